// SPDX-License-Identifier: Apache-2.0
// Elementwise passes on the GPU beside the Cpu: lengths around the 16 bytes, arrays off them, 16-bit types, users' functions with
// dual numbers.
#include <skein/ops/cuda/map.hpp>

#include <thrust/execution_policy.h>

#include <cmath>

#include <catch2/catch.hpp>
#include <skein/nn/elementwise.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/tanh.hpp>

#include "../../support/close.hpp"
#include "../../support/device_array.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::DeviceArray, support::Roundings;

namespace {
struct Swish {
  template <class T> constexpr T operator()(T x) const { return x / (T(1) + exp(-x)); }
};
/// Every function that Dual has and that is finite on (-1, 1).
struct Everything {
  template <class T> constexpr T operator()(T x) const {
    const T positive = x * x + T(1);
    return exp(x) + expm1(x) + log(positive) + log1p(x * x) + sqrt(positive) + sin(x) + cos(x) + atan(x) + sinh(x) + cosh(x) +
           tanh(x) + erf(x) + pow(positive, 1.5) + abs(x) + max(x, T(0.25)) + min(x, T(-0.25)) + where(x < T(0.1), x, x * x);
  }
};
template <class T> std::vector<T> wave(long n, double step) {
  std::vector<T> v;
  for (long i = 0; i < n; ++i) v.push_back(static_cast<T>(static_cast<float>(std::sin(step * static_cast<double>(i + 1)))));
  return v;
}
template <class T> long apart(const std::vector<T>& a, const std::vector<T>& b) {
  long wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wrong += !support::close<T>(a[i], b[i], Roundings::sum, 1);
  return wrong;
}
template <class F, class Scalar> void agrees() {
  for (const long n : {0L, 1L, 3L, 4L, 5L, 63L, 64L, 1000L})
    for (const long shift : {0L, 1L}) {
      const std::vector<Scalar> x = wave<Scalar>(n, 0.7), dy = wave<Scalar>(n, 1.1);
      std::vector<Scalar> y(x.size()), dx(x.size());
      sk::ops::map<sk::Cpu>(nn::detail::Value<F>{}, n, x.data(), y.data());
      const std::vector<Scalar>& at = nn::KnowsDerivativeFromOutput<F> ? y : x;
      sk::ops::zip<sk::Cpu>(nn::detail::Chain<F>{}, n, dy.data(), at.data(), dx.data());
      const DeviceArray<Scalar> there_x(x), there_at(at, shift);
      DeviceArray<Scalar> there_y(x.size(), Scalar(5), shift), there_dx(dy);
      sk::ops::map<sk::Cuda>(nn::detail::Value<F>{}, n, there_x.data(), there_y.data());
      sk::ops::zip<sk::Cuda>(nn::detail::Chain<F>{}, n, there_dx.data(), there_at.data(), there_dx.data());  // in place
      CHECK(apart(there_y.host(), y) == 0);
      CHECK(apart(there_dx.host(), dx) == 0);
    }
}
}  // namespace

TEMPLATE_TEST_CASE("Functions of layers and of users run forward and backward on the GPU as on the Cpu", "[ops][cuda]", float,
                   double) {
  agrees<nn::ReluFunction, TestType>();
  agrees<nn::TanhFunction, TestType>();
  agrees<nn::GeluFunction<>, TestType>();
  agrees<nn::GeluFunction<nn::TanhForm>, TestType>();
  agrees<Swish, TestType>();
  agrees<Everything, TestType>();
}

TEMPLATE_TEST_CASE("A pass over 16-bit values is float's, rounded once", "[ops][cuda]", sk::bf16, sk::fp16) {
  for (const long n : {1L, 7L, 8L, 9L, 100L}) {
    const std::vector<TestType> x = wave<TestType>(n, 0.7);
    const DeviceArray<TestType> there(x);
    DeviceArray<TestType> y(x.size(), TestType(5.0f));
    sk::ops::map<sk::Cuda>(nn::detail::Value<Swish>{}, n, there.data(), y.data());
    const std::vector<TestType> got = y.host();
    for (long i = 0; i < n; ++i) {
      const double v = static_cast<float>(x[static_cast<std::size_t>(i)]), exact = v / (1 + std::exp(-v));
      CHECK(std::abs(static_cast<float>(got[static_cast<std::size_t>(i)]) - exact) <= 0x1p-8 * std::max(std::abs(exact), 0.01));
    }
  }
}

TEST_CASE("The kernels of elementwise passes run by any policy of the host", "[ops][cuda]") {
  const std::vector<float> x = wave<float>(1003, 0.3);
  std::vector<float> y(x.size()), z(x.size());
  sk::ops::map<sk::Cpu>(nn::detail::Value<Swish>{}, 1003, x.data(), y.data());
  sk::cuda::for_each(thrust::seq, 1003, sk::ops::cuda::MapPack<nn::detail::Value<Swish>, float, 1>{{}, 1003, x.data(), z.data()});
  CHECK(apart(y, z) == 0);
}
