// SPDX-License-Identifier: Apache-2.0
// Assignments and sums of trees with static extents, beside plain loops.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/tensor/functions.hpp>
#include <skein/tensor/static_evaluate.hpp>

namespace sk = skein;

namespace {
using Image = sk::SampleLayout<2, 3, 5>;
template <class Layout> using View = sk::StaticView<const double, double, sk::Cpu, Layout>;

/// Value (row, i) of sample s, as it lies in memory of a layout.
template <class Layout> long place(long s, long row, long i) { return s * Layout::sample_stride + row * Layout::pitch + i; }
template <class Layout> std::vector<double> memory(long samples, double step) {
  const long n = Layout::batched ? samples * Layout::sample_stride : sk::stored_count(Layout::extents);
  std::vector<double> values(static_cast<std::size_t>(n));
  for (long k = 0; k < n; ++k) values[static_cast<std::size_t>(k)] = std::sin(step * static_cast<double>(k + 1));
  return values;
}
template <class Layout> double value(const std::vector<double>& m, long s, long row, long i) {
  return m[static_cast<std::size_t>(place<Layout>(s, row, i))];
}

/// y = x * w + 2 beside loops: x of layout X, w of a layout W that broadcasts, its row for row r of x given by `row`.
template <class X, class W, class Row> void assigns(Row&& row) {
  constexpr long batch = 4, last = X::extents.last(), rows = X::count / last;
  const auto x = memory<X>(batch, 0.7), w = memory<W>(batch, 1.1);
  std::vector<double> y(x.size(), -7);
  sk::static_assign<typename X::shape, sk::Cpu>(y.data(), batch, View<X>(x.data(), batch) * View<W>(w.data()) + 2);
  long wrong = 0;
  for (long s = 0; s < batch; ++s)
    for (long r = 0; r < rows; ++r)
      for (long i = 0; i < last; ++i) {
        const double b = value<W>(w, 0, row(r), W::extents.last() == 1 ? 0 : i);
        wrong += !(std::abs(value<X>(y, s, r, i) - (value<X>(x, s, r, i) * b + 2)) <= 1e-14);
      }
  CHECK(wrong == 0);
}

/// The layout of a parameter with the extents of a sample.
template <int... E> sk::ParameterLayout<E...> parameter_of(sk::SampleLayout<E...>);

template <class X> void sums() {
  constexpr long batch = 9, last = X::extents.last(), rows = X::count / last;
  const auto x = memory<X>(batch, 0.7);
  const View<X> v(x.data(), batch);
  std::vector<double> leading(sk::row_pitch(last), 1), per_sample(sk::stored_count(X::extents), 1), all(1, 1);
  sk::static_add_sum<sk::ParameterLayout<static_cast<int>(last)>, sk::Cpu>(leading.data(), batch, sum_leading(v * v));
  sk::static_add_sum<decltype(parameter_of(X{})), sk::Cpu>(per_sample.data(), batch, sum_batch(v * v));
  sk::static_add_sum<sk::ParameterLayout<1>, sk::Cpu>(all.data(), batch, sum_all(v * v));
  double total = 1;
  for (long i = 0; i < last; ++i) {
    double column = 1;
    for (long r = 0; r < rows; ++r) {
      double one = 1;
      for (long s = 0; s < batch; ++s) one += value<X>(x, s, r, i) * value<X>(x, s, r, i);
      CHECK(per_sample[static_cast<std::size_t>(r * sk::row_pitch(last) + i)] == Approx(one));
      column += one - 1;
    }
    CHECK(leading[static_cast<std::size_t>(i)] == Approx(column));
    total += column - 1;
  }
  CHECK(all[0] == Approx(total));
  for (std::size_t i = static_cast<std::size_t>(last); i < leading.size(); ++i) CHECK(leading[i] == 1);  // gaps are not touched
}
}  // namespace

TEST_CASE("Assignments broadcast parameters over samples", "[tensor]") {
  const auto same = [](long r) { return r; };
  const auto first = [](long) { return 0L; };
  assigns<sk::SampleLayout<20>, sk::ParameterLayout<20>>(same);
  assigns<sk::SampleLayout<20>, sk::ParameterLayout<1>>(first);
  assigns<sk::SampleLayout<1>, sk::ParameterLayout<1>>(first);
  assigns<Image, sk::ParameterLayout<5>>(first);
  assigns<Image, sk::ParameterLayout<2, 3, 5>>(same);
  assigns<Image, sk::ParameterLayout<3, 5>>([](long r) { return r % 3; });
  assigns<Image, sk::ParameterLayout<2, 1, 5>>([](long r) { return r / 3; });
  assigns<Image, sk::ParameterLayout<2, 1, 1>>([](long r) { return r / 3; });
  assigns<Image, sk::ParameterLayout<3, 1>>([](long r) { return r % 3; });
  assigns<sk::SampleLayout<2, 2, 2, 40>, sk::ParameterLayout<40>>(first);
}

TEST_CASE("Sums over the samples, over all but the last extent, over all", "[tensor]") {
  sums<sk::SampleLayout<1>>();
  sums<sk::SampleLayout<3>>();
  sums<sk::SampleLayout<77>>();
  sums<sk::SampleLayout<300>>();
  sums<Image>();
  sums<sk::SampleLayout<4, 3, 1>>();
  sums<sk::SampleLayout<5, 64>>();
}

TEST_CASE("a sample of one value has the same bits alone and in any batch") {
  constexpr long batch = 100;
  using One = sk::SampleLayout<1>;
  std::vector<float> x(batch), y(batch), alone(batch);
  for (long s = 0; s < batch; ++s) x[s] = std::sin(static_cast<float>(s)) * 3;
  const auto write = [&](float* to, long first, long n) {
    sk::static_assign<sk::Shape<1>, sk::Cpu>(to, n, exp(sk::StaticView<const float, float, sk::Cpu, One>(x.data() + first, n)));
  };
  write(y.data(), 0, batch);
  for (long s = 0; s < batch; ++s) write(alone.data() + s, s, 1);
  CHECK(alone == y);
}
