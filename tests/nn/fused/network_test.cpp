// SPDX-License-Identifier: Apache-2.0
// Whole networks, fused and not: the same outputs and gradients, by one and two workers, layer by layer and in blocks.
#include <catch2/catch.hpp>

#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/executor.hpp>

#include "support/conv_cases.hpp"

using namespace skein;
using nn::Conv2d;
using nn::MaxPool2d;
using nn::Relu;

namespace {
using None = nn::Identity;  // between two layers it keeps them apart
template <class... Ls> using Net = nn::Sequential<Ls...>;

using Lenet = Net<Conv2d<6, Kernel<5>, Padding<2>>, Relu, MaxPool2d<2>, Conv2d<16, Kernel<5>>, Relu, MaxPool2d<2>, nn::Flatten,
                  nn::Linear<10>>;
using PlainLenet = Net<Conv2d<6, Kernel<5>, Padding<2>>, None, Relu, None, MaxPool2d<2>, Conv2d<16, Kernel<5>>, None, Relu, None,
                       MaxPool2d<2>, nn::Flatten, nn::Linear<10>>;
using Odd = Net<Conv2d<5, Kernel<3>, Stride<2>>, Relu, MaxPool2d<3, Stride<2>>, Conv2d<12, Kernel<3>, Padding<1>>, Relu,
                Conv2d<9, Kernel<1>>, MaxPool2d<2>, nn::GlobalAvgPool>;
using PlainOdd = Net<Conv2d<5, Kernel<3>, Stride<2>>, None, Relu, None, MaxPool2d<3, Stride<2>>,
                     Conv2d<12, Kernel<3>, Padding<1>>, None, Relu, Conv2d<9, Kernel<1>>, None, MaxPool2d<2>, nn::GlobalAvgPool>;

struct Result {
  std::vector<double> outputs, gradients;
};
template <class Network, class In> Result run(ExecutorOptions options) {
  Model<Network, In> model{Seed{7}};
  Executor executor(model, nn::Mse{}, options);
  constexpr long pitch = sample_pitch(In::extents), out = row_pitch(decltype(executor)::width);
  std::vector<float> x(static_cast<std::size_t>(options.capacity * pitch)),
      targets(static_cast<std::size_t>(options.capacity * out));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(support::scattered(static_cast<long>(i), 1));
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<float>(support::scattered(static_cast<long>(i), 2));
  Result r;
  for (int step = 0; step < 2; ++step) {  // the second with other weights: derived copies must follow
    executor.forward_backward(BatchView<float>{x.data(), pitch, nullptr, targets.data(), out, options.capacity});
    r.outputs.insert(r.outputs.end(), executor.outputs(), executor.outputs() + options.capacity * out);
    for (float g : model.gradients()) r.gradients.push_back(static_cast<double>(g));
    for (float& p : model.modify()) p *= 0.9f;
  }
  return r;
}
template <class Fused, class Plain, class In> void agree(int layers) {
  STATIC_REQUIRE(Model<Fused, In>::fused::size < Fused::size);
  CHECK(Model<Fused, In>::fused::size == layers);
  const Result expected = run<Plain, In>({.capacity = 11, .execution = Execution::layer_wise, .threads = 1});
  for (Execution e : {Execution::layer_wise, Execution::depth_first})
    for (int threads : {1, 2, 3}) {
      INFO("threads " << threads);
      const Result got = run<Fused, In>({.capacity = 11, .execution = e, .block = 4, .threads = threads});
      CHECK(support::apart(got.outputs, expected.outputs) < 1e-6);
      CHECK(support::apart(got.gradients, expected.gradients) < 3e-6);
    }
}
}  // namespace

TEST_CASE("LeNet, fused and not, gives the same") { agree<Lenet, PlainLenet, Shape<28, 28, 1>>(4); }
TEST_CASE("a network of odd sizes, fused and not, gives the same") { agree<Odd, PlainOdd, Shape<37, 29, 3>>(4); }
