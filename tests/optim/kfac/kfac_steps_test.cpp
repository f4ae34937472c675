// SPDX-License-Identifier: Apache-2.0
// Kfac in steps of several batches, and behind blocks whose activations are made again: the weights of whole batches and of
// activations that were kept, on one rank and on two.
#include <skein/optim/kfac/kfac.hpp>

#include <vector>

#include <catch2/catch.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/random.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/repeat.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "../../support/larger.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;
template <int F> using Conv = nn::Conv2d<F, sk::Kernel<3>, sk::Padding<1>>;
using Block = nn::Sequential<nn::Residual<nn::Sequential<Conv<8>, nn::Relu, Conv<8>>>, nn::Relu>;
template <class B> using Net = nn::Sequential<Conv<8>, nn::Repeat<2, B>, nn::GlobalAvgPool, nn::Linear<5>>;

const auto& images() {
  static const auto set = [] {
    std::vector<float> x(24 * 6 * 6 * 2);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(7, 0, i) - 0.5f;
    std::vector<std::int32_t> y;
    for (int i = 0; i < 24; ++i) y.push_back((7 * i + 3) % 5);
    return sk::data::from_tensors(x, sk::Extents{3, {6, 6, 2}}, y);
  }();
  return set;
}

/// Weights after three epochs of three steps of eight images, each of so many batches.
template <class B, class... Policy> Values trained(int batches, int every, const Policy&... policy) {
  sk::Model<Net<B>, sk::Shape<6, 6, 2>, sk::Cpu, double> model{sk::Seed{3}};
  const optim::Kfac kfac{.damping = 0.01, .factor_every = every, .inverse_every = every};
  sk::Trainer trainer{model, nn::CrossEntropy{}, optim::chain(kfac, optim::Sgd{.lr = 0.05f, .momentum = 0.9}), policy...};
  trainer.fit(
      images(),
      {.epochs = 3, .batch = 8 / batches, .seed = sk::Seed{5}, .progress = false, .threads = 2, .step = {.accumulate = batches}});
  const auto all = std::as_const(model).parameters();
  return {all.begin(), all.end()};
}
template <class B> Values on_two_ranks(int batches) {
  Values first;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    Values own = trained<B>(batches, 1, sk::parallel::DataParallel{world});
    if (world.rank() == 0) first = std::move(own);
  });
  return first;
}
double apart(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = support::larger(most, std::abs(a[i] - b[i]));
  return most;
}
}  // namespace

TEST_CASE("Kfac in steps of two batches has the weights of whole ones", "[optim]") {
  for (const int every : {1, 2}) CHECK(apart(trained<Block>(1, every), trained<Block>(2, every)) < 1e-12);
  CHECK(apart(trained<Block>(1, 1), trained<Block>(1, 2)) > 1e-6);  // factors of another step are others
}

TEST_CASE("Kfac behind activations that are made again has the weights of those that are kept", "[optim]") {
  const Values kept = trained<Block>(1, 1);
  CHECK(apart(kept, trained<nn::Recompute<Block>>(1, 1)) < 1e-12);
  CHECK(apart(kept, trained<nn::Recompute<Block>>(2, 1)) < 1e-12);
  CHECK(apart(kept, on_two_ranks<nn::Recompute<Block>>(2)) < 1e-12);
}
