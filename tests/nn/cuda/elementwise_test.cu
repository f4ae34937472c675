// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/elementwise.hpp>
#include <skein/ops/cuda/map.hpp>

#include <skein/nn/gelu.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/tanh.hpp>

#include "../../support/device_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;

namespace {
struct Softplus {
  template <class T> constexpr T operator()(T x) const { return max(x, T(0)) + log1p(exp(-abs(x))); }
};
template <class L, class Scalar> void everywhere() {
  for (const long batch : {1L, 5L, 17L}) {
    agree<L, sk::Shape<3>, Scalar>({.batch = batch, .roundings = support::Roundings::function});
    agree<L, sk::Shape<100>, Scalar>({.batch = batch, .roundings = support::Roundings::function});
    agree<L, sk::Shape<3, 5, 7>, Scalar>({.batch = batch, .wants_dx = batch != 5, .roundings = support::Roundings::function});
  }
}
}  // namespace

TEMPLATE_TEST_CASE("Elementwise layers on the GPU agree with the Cpu", "[nn][cuda]", float, double) {
  everywhere<nn::Relu, TestType>();
  everywhere<nn::LeakyRelu<>, TestType>();
  everywhere<nn::Sigmoid, TestType>();
  everywhere<nn::Tanh, TestType>();
  everywhere<nn::Gelu, TestType>();
  everywhere<nn::BasicGelu<nn::TanhForm>, TestType>();
  everywhere<nn::Elementwise<Softplus>, TestType>();
}
