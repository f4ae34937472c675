// SPDX-License-Identifier: Apache-2.0
// The products with compile-time columns: how columns are cut, and every panel against plain loops.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#include <skein/device/memory.hpp>
#include <skein/nn/relu.hpp>
#include <skein/ops/cpu/column_sums.hpp>
#include <skein/ops/cpu/transpose.hpp>

#include "../support/close.hpp"

namespace sk = skein;

TEST_CASE("transpose: any sizes, a part of the rows", "[gemm]") {
  for (long rows : {1L, 7L, 8L, 17L, 40L})
    for (long columns : {1L, 8L, 19L, 33L}) {
      std::vector<float> from(static_cast<std::size_t>(rows * (columns + 2))),
          to(static_cast<std::size_t>((rows + 5) * columns), -1.0f);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      const long cut = columns / 3;
      sk::ops::cpu::transpose(rows, 0, cut, from.data(), columns + 2, to.data(), rows + 5);
      sk::ops::cpu::transpose(rows, cut, columns, from.data(), columns + 2, to.data(), rows + 5);
      long wrong = 0;
      for (long j = 0; j < columns; ++j)
        for (long i = 0; i < rows + 5; ++i)
          wrong += to[static_cast<std::size_t>(j * (rows + 5) + i)] !=
                   (i < rows ? from[static_cast<std::size_t>(i * (columns + 2) + j)] : -1.0f);
      INFO(rows << " x " << columns);
      CHECK(wrong == 0);
    }
}

#if SKEIN_WITH_XSIMD

namespace {

namespace cpu = sk::ops::cpu;

template <class S> sk::Arena<S> filled(long rows, long columns, long pitch, double step, S gap) {
  sk::Arena<S> a(static_cast<std::size_t>(std::max(rows * pitch, 1L)));  // a product asks for pointers that are not null
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < pitch; ++j)
      a.data()[i * pitch + j] = j < columns ? static_cast<S>(std::sin(step * static_cast<double>(i * columns + j + 1))) : gap;
  return a;
}

struct Halve {
  template <class V> V operator()(const V& v) const { return v * V(0.5f); }
};

using Rectify = sk::nn::detail::Value<sk::nn::ReluFunction>;  // whose tiles ask at run time
static_assert(sk::ops::is_rectifier<Rectify> && !sk::ops::is_rectifier<Halve>);

template <class S, int N> constexpr bool cuts_well() {
  using Plan = cpu::ColumnPlan<S, N>;
  int columns = Plan::narrow_tail ? Plan::half : 0;
  for (int p = 0; p < Plan::panels; ++p) {
    if (Plan::first(p) != (p == 0 ? 0 : Plan::first(p - 1) + Plan::width(p - 1) * Plan::lanes)) return false;
    columns += Plan::width(p) * Plan::lanes;
  }
  return columns >= N && columns - N < Plan::lanes && columns <= sk::row_pitch(N);
}

template <class S, int N> void check() {
  static_assert(cuts_well<S, N>());
  constexpr long pitch = sk::row_pitch(N);
  const S nan = std::numeric_limits<S>::quiet_NaN();
  for (long m : {0L, 1L, 2L, 3L, 5L, 11L, 12L, 29L})
    for (long k : {0L, 1L, 9L})
      for (bool turned : {false, true}) {
        const long a_pitch = (turned ? m : k) + 1;
        const auto a = filled<S>(turned ? k : m, turned ? m : k, a_pitch, 0.7, nan);
        const auto b = filled<S>(k, N, pitch, 1.1, turned ? nan : S(0));  // gradients may have anything in their gaps
        const auto start = filled<S>(1, N, pitch, 0.4, S(0));
        auto c = filled<S>(m, N, pitch, 0.2, S(0)), d = filled<S>(m, N, pitch, 0.2, S(0)), e = filled<S>(m, N, pitch, 0.2, S(0));
        cpu::Product<S> p{
            .m = m, .k = k, .a = a.data(), .lda = a_pitch, .b = b.data(), .ldb = pitch, .c = c.data(), .ldc = pitch};
        if (turned) {  // accumulates, by three workers
          p.start = p.c;
          p.start_pitch = pitch;
          for (int w = 0; w < 3; ++w) cpu::small_product<N, true, true>(p, {w, 3});
        } else {
          p.start = start.data();
          cpu::small_product<N, false, false, Halve>(p);
          p.start = nullptr;
          p.c = d.data();
          cpu::small_product<N, false, false>(p);
          p.c = e.data();
          cpu::small_product<N, false, false, Rectify>(p);
        }
        long wrong = 0;
        for (long i = 0; i < m; ++i)
          for (long j = 0; j < N; ++j) {
            double sum = 0;
            for (long q = 0; q < k; ++q)
              sum += static_cast<double>(a.data()[turned ? q * a_pitch + i : i * a_pitch + q]) *
                     static_cast<double>(b.data()[q * pitch + j]);
            const auto near = [&](S x, double want) {
              return support::close(x, static_cast<S>(want), support::Roundings::arithmetic, 10);
            };
            if (turned) wrong += !near(c.data()[i * pitch + j], sum + std::sin(0.2 * static_cast<double>(i * N + j + 1)));
            else
              wrong += !near(c.data()[i * pitch + j], 0.5 * (sum + static_cast<double>(start.data()[j]))) +
                           !near(d.data()[i * pitch + j], sum) ||
                       e.data()[i * pitch + j] != std::max(S(0), d.data()[i * pitch + j]);
          }
        if (turned)
          for (long i = 0; i < m; ++i)
            for (long j = N; j < pitch; ++j) wrong += c.data()[i * pitch + j] != S(0);
        INFO("N " << N << " m " << m << " k " << k << " turned " << turned);
        CHECK(wrong == 0);
      }
  const auto dy = filled<S>(9, N, pitch, 0.9, nan);
  auto sums = filled<S>(1, N, pitch, 0.1, S(0));
  for (int w = 0; w < 2; ++w)
    cpu::column_sums<N>(cpu::ColumnSums<S>{.rows = 9, .pitch = pitch, .dy = dy.data(), .sums = sums.data(), .accumulate = true},
                        {w, 2});
  for (long j = 0; j < pitch; ++j) {
    double want = j < N ? std::sin(0.1 * static_cast<double>(j + 1)) : 0;
    for (long i = 0; j < N && i < 9; ++i) want += static_cast<double>(dy.data()[i * pitch + j]);
    CHECK(support::close(sums.data()[j], static_cast<S>(want), support::Roundings::arithmetic, j < N ? 10 : 0));
  }
}

/// Rows of B that are copied by blocks: the bits of those that are read where they lie.
template <class S, int N, bool Turned, class Finish = sk::ops::Keep> void check_far() {
  constexpr long pitch = sk::row_pitch(N);
  for (long m : {0L, 15L, 16L, 53L})
    for (long k : {0L, 1L, 128L, 513L, 1100L})
      for (bool adds : {false, true}) {
        const long a_pitch = (Turned ? m : k) + 1;
        const auto a = filled<S>(Turned ? k : m, Turned ? m : k, a_pitch, 0.7, S(3));
        const auto b = filled<S>(k, N, pitch, 1.1, S(0)), bias = filled<S>(1, N, pitch, 0.4, S(0));
        auto c = filled<S>(m, N, pitch, 0.2, S(0)), d = filled<S>(m, N, pitch, 0.2, S(0));
        cpu::Product<S> p{
            .m = m, .k = k, .a = a.data(), .lda = a_pitch, .b = b.data(), .ldb = pitch, .c = c.data(), .ldc = pitch};
        p.start = adds ? p.c : bias.data();
        p.start_pitch = adds ? pitch : 0;
        cpu::small_product<N, Turned, Turned, Finish, cpu::Spacing::far>(p);
        p.c = d.data();
        if (adds) p.start = p.c;
        cpu::small_product<N, Turned, Turned, Finish>(p);
        INFO("N " << N << " m " << m << " k " << k << " turned " << Turned << " adds " << adds);
        CHECK(std::equal(c.data(), c.data() + m * pitch, d.data()));
      }
}

}  // namespace

TEST_CASE("rows of B that lie far apart are copied, and nothing else changes", "[gemm]") {
  check_far<float, 512, false>();
  check_far<float, 512, true>();
  check_far<float, 200, false, Halve>();
  check_far<float, 200, false, Rectify>();
  check_far<float, 203, true>();
  check_far<double, 120, false>();
  check_far<double, 17, true>();
}
TEST_CASE("a product that is rectified keeps what is not a number, and minus infinity where it is not", "[gemm]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const float a[] = {nan, -infinity, -2, 3};
  auto b = filled<float>(1, 24, sk::row_pitch(24), 0.0, 0.0f), c = filled<float>(4, 24, sk::row_pitch(24), 0.0, 0.0f);
  for (long j = 0; j < 24; ++j) b.data()[j] = 1;
  cpu::Product<float> p{.m = 4, .k = 1, .a = a, .lda = 1, .b = b.data(), .ldb = 24, .c = c.data(), .ldc = sk::row_pitch(24)};
  cpu::small_product<24, false, false>(p);
  const auto row = [&](long i) { return c.data()[i * sk::row_pitch(24) + 23]; };
  CHECK((std::isnan(row(0)) && row(1) == -infinity && row(2) == -2 && row(3) == 3));
  cpu::small_product<24, false, false, Rectify>(p);
  CHECK((std::isnan(row(0)) && row(1) == 0 && row(2) == 0 && row(3) == 3));
}

TEST_CASE("small products agree with plain loops", "[gemm]") {
  check<float, 7>();
  check<float, 8>();
  check<float, 10>();
  check<float, 17>();
  check<float, 40>();
  check<float, 84>();
  check<float, 200>();
  check<float, 512>();
  check<double, 7>();
  check<double, 10>();
  check<double, 17>();
  check<double, 120>();
}

#endif
