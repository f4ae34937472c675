// SPDX-License-Identifier: Apache-2.0
// Reductions, matrix-vector products and sorting of tensors on a device.
#include <skein/ops/matmul.hpp>
#include <skein/tensor/create.hpp>
#include <skein/tensor/cuda/evaluator.hpp>
#include <skein/tensor/cuda/reducer.hpp>
#include <skein/tensor/cuda/sorter.hpp>

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>
#include "../support.hpp"

using namespace tensor_test;
using sk::range;

namespace {
template <class E> auto values_of(const E& e) { return list(sk::to_host(e)); }
template <class S> bool near(S a, S b, double magnitude) {
  if constexpr (std::is_integral_v<S>) return a == b;
  else return support::close(a, b, support::Roundings::sum, magnitude);
}
template <class S, int R> bool near(const sk::Tensor<S, R>& a, const sk::Tensor<S, R>& b, double magnitude) {
  bool all = a.shape() == b.shape();
  for (long i = 0; all && i < a.size(); ++i) all = near(a.data()[i], b.data()[i], magnitude);
  return all;
}
}  // namespace

TEMPLATE_TEST_CASE("whole reductions of a device's tensors bring their number to the host", "", float) {
  using S = TestType;
  for (long n : {1L, 5L, 1000L, 70001L}) {
    const auto a = values<S>(sk::dims(n), 1, -9, 9);
    const auto x = a.template to<sk::Cuda>();
    CHECK(near(sum(x), sum(a), 9. * static_cast<double>(n)));
    CHECK(near(sum(x * x - S(1)), sum(a * a - S(1)), 80. * static_cast<double>(n)));
    CHECK(sum(x > S(2)) == sum(a > S(2)));
    CHECK(max(x) == max(a));
    CHECK(min(x) == min(a));
    CHECK(argmax(x) == argmax(a));
    CHECK(argmin(x * S(-1)) == argmin(a * S(-1)));
    CHECK(near(mean(x), mean(a), 9));
    CHECK(near(dot(x, x), dot(a, a), 81. * static_cast<double>(n)));
    if constexpr (std::is_floating_point_v<S>) CHECK(near(norm(x), norm(a), 1));
    CHECK(sum(x) == sum(x));
  }
}

TEST_CASE("sums of integers on a device are long and their norms double, as on the host") {
  sk::Tensor<std::uint8_t, 2> a(sk::dims(2, 4));
  a = std::uint8_t(100);
  const auto x = a.to<sk::Cuda>();
  CHECK(sum(x) == 800);
  CHECK(values_of(sum(x, 1)) == std::vector<long>{400, 400});
  CHECK(norm(x, sk::Norm::l1) == 800);
  CHECK(values_of(norm(x, sk::Norm::l2, 1)) == std::vector<double>{200, 200});
  CHECK(mean(sk::ones<double>(49).to<sk::Cuda>()) == 1);
}

TEMPLATE_TEST_CASE("Euclidean norms along an axis of a device, of values whose squares are no numbers of their type", "", float,
                   double) {
  using S = TestType;
  using Limits = std::numeric_limits<S>;
  const S large = Limits::max() / 8, small = Limits::min() / 8, squares = std::sqrt(Limits::min()) / 8;
  for (const S unit : {S(1), large, small, squares})
    for (const long n : {2L, 70L, 70001L}) {
      CAPTURE(unit, n);
      sk::Tensor<S, 2> a(sk::dims(3, n));  // rows of (3, 4), zeros, (4, 3), at both ends
      a(0, 0) = a(2, n - 1) = 3 * unit, a(0, n - 1) = a(2, 0) = 4 * unit;
      const auto x = a.template to<sk::Cuda>();
      const sk::Tensor<S, 1> rows = norm(x, sk::Norm::l2, 1).template to<sk::Cpu>();
      const sk::Tensor<S, 1> columns = norm(x, sk::Norm::l2, 0).template to<sk::Cpu>();
      const sk::Tensor<S, 1> halves = norm(x / S(2), sk::Norm::l2, -1).template to<sk::Cpu>();
      const auto same = [&](S value, S wanted) { return near(value / unit, wanted / unit, 5); };
      CHECK((same(rows(0), 5 * unit) && rows(1) == 0 && same(rows(2), 5 * unit) && same(halves(0), 5 * unit / 2)));
      CHECK((same(columns(0), 5 * unit) && same(columns(n - 1), 5 * unit) && (n == 2 || columns(2) == 0)));
    }
  const S none = Limits::quiet_NaN(), infinite = Limits::infinity(), least = std::sqrt(Limits::min());
  const sk::Tensor<S, 2> a{{infinite, 1}, {none, 0}, {large, 0}, {none, large}, {least, least / 8}, {large, 1}};
  const sk::Tensor<S, 1> rows = norm(a.template to<sk::Cuda>(), sk::Norm::l2, -1).template to<sk::Cpu>();
  CHECK((rows(0) == infinite && std::isnan(rows(1)) && near(rows(2) / large, S(1), 1) && std::isnan(rows(3))));
  CHECK((near(rows(4) / least, std::sqrt(S(65)) / 8, 1) && near(rows(5) / large, S(1), 1)));
  CHECK(values_of(norm(sk::Tensor<S, 2, sk::Cuda>(sk::dims(2, 0)), sk::Norm::l2, 1)) == std::vector<S>{0, 0});
}

TEST_CASE("reductions along an axis stay on the device, and nest in expressions there") {
  const auto a = values<float>(sk::dims(6, 50, 3), 1);
  const auto x = a.to<sk::Cuda>();
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(near(sum(x, axis).to<sk::Cpu>(), sum(a, axis), 100));
    CHECK(near(mean(x, axis).to<sk::Cpu>(), mean(a, axis), 2));
    CHECK(values_of(max(x, axis)) == list(max(a, axis)));
    CHECK(values_of(min(x.permute(2, 0, 1), axis)) == list(min(a.permute(2, 0, 1), axis)));
    CHECK(values_of(argmax(x, axis)) == list(argmax(a, axis)));
    CHECK(values_of(argmin(x.reverse(1), axis)) == list(argmin(a.reverse(1), axis)));
    CHECK(near(norm(x, sk::Norm::l2, axis).to<sk::Cpu>(), norm(a, sk::Norm::l2, axis), 10));
  }
  const sk::Tensor centred = x - mean(x, 1, sk::keep);
  const sk::Tensor expected = a - mean(a, 1, sk::keep);
  CHECK(near(centred.to<sk::Cpu>(), expected, 4));
  const sk::Tensor<float, 2, sk::Cuda> none(sk::dims(0, 3));
  CHECK(values_of(sum(none, 0)) == std::vector<float>{0, 0, 0});
  CHECK(sum(none) == 0);
  CHECK(text_of([&] { max(none); }) == "max: the tensor has no values");
}

TEST_CASE("on a device NaNs are passed over and the first of equals counts") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const sk::Tensor<double, 2> a{{none, 2, 5, none, 5, -1, -1, none}, {none, none, none, none, none, none, none, none}};
  const auto x = a.to<sk::Cuda>();
  CHECK(max(x) == 5);
  CHECK(min(x) == -1);
  CHECK(argmax(x) == 2);
  CHECK(argmin(x) == 5);
  CHECK(values_of(argmax(x, 1)) == std::vector<long>{2, 0});
}

TEMPLATE_TEST_CASE("a matrix times a vector on a device", "", float, double) {
  const sk::cuda::UseDevice first(sk::Cuda{0});
  using S = TestType;
  for (long columns : {1L, 7L, 200L}) {
    const auto a = values<S>(sk::dims(33, columns), 1);
    const auto v = values<S>(sk::dims(columns), 2), w = values<S>(sk::dims(33L), 3);
    const auto b = a.template to<sk::Cuda>();
    CHECK(near(mv(b, v.template to<sk::Cuda>()).template to<sk::Cpu>(), mv(a, v), 4. * static_cast<double>(columns)));
    CHECK(near(mv(b.transpose(), w.template to<sk::Cuda>()).template to<sk::Cpu>(), mv(a.transpose(), w), 4. * 33));
  }
  if (sk::cuda::device_count() < 2) return;
  const auto there = sk::zeros<S>(sk::Cuda{1}, 3, 3);
  const auto here = sk::zeros<S>(sk::Cuda{0}, 3);
  CHECK(sk::sum(there) == 0);
  CHECK(sk::cuda::current_device() == sk::Cuda{0});
  CHECK(text_of([&] { mv(there, here); }) == "elementwise operation: tensors on Cuda 1 and 0 meet: move one of them with .to()");
}

TEST_CASE("a device's vectors are sorted there") {
  const auto v = values<float>(sk::dims(3001), 1);
  const auto x = v.to<sk::Cuda>();
  CHECK(values_of(sk::sort(x)) == list(sk::sort(v)));
  CHECK(values_of(sk::argsort<sk::Order::descending>(x * 2)) == list(sk::argsort<sk::Order::descending>(v)));
  CHECK(values_of(x) == list(v));
  if (sk::cuda::device_count() < 2) return;
  CHECK(values_of(sk::sort(x.to(sk::Cuda{1}))) == list(sk::sort(v)));
  CHECK(sk::cuda::current_device() == sk::Cuda{0});
}
