// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/core/half.hpp>
#include <skein/device/cuda/memory.hpp>
#include <skein/ops/cuda/column_sums.hpp>
#include <skein/ops/cuda/pack.hpp>

#include "support/on_device.hpp"

namespace sk = skein;
namespace ops = skein::ops;

namespace {
template <class Value> struct ValuesAndSquares {
  static constexpr int widest = ops::cuda::pack_width<Value>;
  using Run = ops::RunSums<Value>;
  const Value* x;
  bool aligned() const { return ops::cuda::aligned_16(x); }
  template <int W> SKEIN_HOST_DEVICE ops::cuda::Pack<Value, W> load(long i) const { return ops::cuda::load<W>(x + i); }
  template <int W, class Sums> SKEIN_HOST_DEVICE void add(long, long, const ops::cuda::Pack<Value, W>& in, Sums* sums) const {
    for (int k = 0; k < W; ++k) {
      const auto v = static_cast<decltype(sums->first)>(in.value[k]);
      sums[k].first += v;
      sums[k].second += v * v;
    }
  }
};
struct Keep {
  double* to;
  long width;
  constexpr void operator()(long c, const ops::TwoSums& s) const { to[c] = s.first, to[width + c] = s.second; }
};
}  // namespace

TEST_CASE("tiles and blocks of rows cover a matrix, by its shape alone", "[cuda]") {
  for (const long rows : {0L, 1L, 15L, 16L, 17L, 1000L, 100000L, 5000000L})
    for (const long width : {1L, 3L, 6L, 64L, 2048L, 200000L})
      for (const int columns : {1, 2, 4, 8}) {
        INFO(rows << " x " << width << " by " << columns);
        const ops::ColumnCut cut = ops::ColumnCut::of(rows, width, columns);
        CHECK((cut.across >= 1 && cut.across <= 32));
        CHECK(cut.tiles * cut.across * columns >= width);
        CHECK((cut.tiles - 1) * cut.across * columns < width);
        CHECK((cut.blocks >= 1 && (cut.blocks == 1 || cut.blocks * cut.tiles <= 1024)));
        CHECK((cut.blocks == 1 || rows / cut.blocks >= cut.down()));  // no thread without a row
        CHECK(ops::column_sums_bytes(rows, width) >= static_cast<std::size_t>(cut.blocks * width) * 16);
        CHECK(ops::column_sums_bytes(rows, width) >= static_cast<std::size_t>(ops::column_blocks(rows, width) * width) * 16);
      }
}

namespace {
template <class Value> void follow_a_loop(long rows, long width, double tolerance) {
  INFO(rows << " x " << width);
  std::vector<Value> x(static_cast<std::size_t>(rows * width));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<Value>(static_cast<float>(std::sin(0.37 * static_cast<double>(i)) + 1.5));
  std::vector<double> sums(static_cast<std::size_t>(2 * width));
  for (long i = 0; i < rows * width; ++i) {
    const double v = static_cast<double>(x[static_cast<std::size_t>(i)]);
    sums[static_cast<std::size_t>(i % width)] += v;
    sums[static_cast<std::size_t>(width + i % width)] += v * v;
  }
  support::OnDevice<Value> there(x);
  support::OnDevice<double> out(std::vector<double>(sums.size(), NAN)), again(std::vector<double>(sums.size(), NAN));
  support::OnDevice<double> plainly(std::vector<double>(sums.size(), NAN));
  for (auto* to : {&out, &again, &plainly}) {
    const sk::cuda::PlainKernels kernels(to == &plainly);
    ops::column_sums(rows, width, sk::cuda::workspace().get(ops::column_sums_bytes(rows, width)),
                     ValuesAndSquares<Value>{there.data()}, Keep{to->data(), width});
  }
  const std::vector<double> result = out.values();
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(result[i] == Approx(sums[i]).epsilon(tolerance));
  CHECK(again.values() == result);
  const std::vector<double> plain = plainly.values();
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(plain[i] == Approx(sums[i]).epsilon(1e-13));
}
}  // namespace

TEST_CASE("column sums are those of a loop in double, and the same in every run", "[cuda]") {
  for (const long rows : {0L, 1L, 7L, 40L, 333L, 5000L})
    for (const long width : {1L, 3L, 32L, 100L, 296L}) {
      follow_a_loop<float>(rows, width, 1e-13);
      follow_a_loop<sk::bf16>(rows, width, 1e-6);  // runs of four rows are added up in float
    }
}
