// SPDX-License-Identifier: Apache-2.0
// Networks cut into stages: what is in which, checked by the compiler.
#include <skein/parallel/pipeline/stages.hpp>

#include <catch2/catch.hpp>

#include <concepts>

#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using namespace skein::parallel;

using Mlp = nn::Sequential<nn::Linear<512>, nn::Relu, nn::Linear<512>, nn::Relu, nn::Linear<10>>;
// 784 * 512 against 512 * 512 + 512 * 10: between the two large products, behind the activation that is fused with the first.
static_assert(
    std::same_as<balanced_stages<Mlp, sk::Shape<784>, 2>,
                 Stages<nn::Sequential<nn::Linear<512>, nn::Relu>, nn::Sequential<nn::Linear<512>, nn::Relu, nn::Linear<10>>>>);
static_assert(std::same_as<balanced_stages<Mlp, sk::Shape<784>, 3>,
                           Stages<nn::Sequential<nn::Linear<512>, nn::Relu>, nn::Sequential<nn::Linear<512>, nn::Relu>,
                                  nn::Sequential<nn::Linear<10>>>>);
static_assert(std::same_as<balanced_stages<Mlp, sk::Shape<784>, 1>, Stages<Mlp>>);

struct LeNet : nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>,
                              nn::Conv2d<16, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu,
                              nn::Linear<84>, nn::Relu, nn::Linear<10>> {};
using LeNetStages = balanced_stages<LeNet, sk::Shape<28, 28, 1>, 2>;

namespace {
template <class S> struct Parts;
template <class... Ss> struct Parts<Stages<Ss...>> {
  static constexpr int count = sizeof...(Ss);
  using whole = whole_network<Ss...>;
};
struct Costs {
  static constexpr int size = 6;
  std::array<long, 6> flops{4, 0, 3, 3, 1, 1}, crossing{9, 2, 5, 5, 5, 0};
};
}  // namespace
static_assert(std::same_as<Parts<LeNetStages>::whole::children, LeNet::children>);
static_assert(Parts<balanced_stages<LeNet, sk::Shape<28, 28, 1>, 4>>::count == 4);
static_assert(std::same_as<whole_network<nn::Linear<3>, nn::Sequential<nn::Relu>>, nn::Sequential<nn::Linear<3>, nn::Relu>>);

TEST_CASE("a cut is where the most costly stage costs least, then where least travels", "[parallel]") {
  CHECK(detail::cut<2>(Costs{}) == std::array<int, 3>{0, 3, 6});
  CHECK(detail::cut<3>(Costs{}) ==
        std::array<int, 4>{0, 2, 3, 6});  // 4, 3 and 5; behind the layer that costs nothing, since it hands on less
  CHECK(detail::cut<6>(Costs{}) == std::array<int, 7>{0, 1, 2, 3, 4, 5, 6});
}
