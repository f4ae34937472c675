// SPDX-License-Identifier: Apache-2.0
// What docs/guide/optim.md quotes of chains, beside tests/support/own_optimizers.hpp.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <skein/skein.hpp>

#include "../support/own_optimizers.hpp"

namespace sk = skein;

namespace {
using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<12>, sk::nn::Relu, sk::nn::Linear<10>>;
using Model = sk::Model<Net, sk::Shape<4, 4, 1>>;
const auto& examples() {
  static const auto data = [] {
    std::vector<float> x(16 * 40);
    std::vector<std::int32_t> labels(40);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(3, 0, i) - 0.5f;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
    return sk::data::from_tensors(x, sk::Extents{3, {4, 4, 1}}, labels);
  }();
  return data;
}
template <class Optimizer> bool learns(const Optimizer& optimizer) {
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optimizer};
  const std::vector<double> losses = trainer.fit(examples(), {.epochs = 12, .batch = 10, .progress = false}).losses();
  return losses.back() < 0.9 * losses.front();
}
}  // namespace

TEST_CASE("a chain of transforms and an optimizer", "[guide]") {
  Model model{sk::Seed{1}};
  // [quote chain]
  const auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1.0f},                               // global: a norm of all
                                          sk::optim::Lars{.trust = 0.02f, .weight_decay = 1e-4f},  // each parameter's tensor
                                          sk::optim::ClipValue{0.5f},                              // element by element
                                          sk::optim::Sgd{.lr = 0.5f, .momentum = 0.9});
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optimizer};
  // [end]
  const std::vector<double> losses = trainer.fit(examples(), {.epochs = 12, .batch = 10, .progress = false}).losses();
  CHECK(losses.back() < 0.9 * losses.front());
}

TEST_CASE("optimizers for large batches, and Muon", "[guide]") {
  // [quote large_batch]
  const auto lamb = sk::optim::chain(sk::optim::Lamb{.weight_decay = 0.01f}, sk::optim::Sgd{.lr = 0.05f});
  const auto muon = sk::optim::chain(sk::optim::Muon{}, sk::optim::Sgd{.lr = 0.05f, .weight_decay = 0.01f});
  // [end]
  CHECK(learns(lamb));
  CHECK(learns(muon));
}

TEST_CASE("an optimizer and transforms of one's own", "[guide]") {
  CHECK(learns(own::Signum{.lr = 0.01f}));
  CHECK(learns(sk::optim::chain(own::Centralize{}, own::Quantize{}, own::Signum{.lr = 0.01f})));
  // [quote own_groups]
  auto signum = sk::optim::chain(own::Signum{.lr = 0.01f, .weight_decay = 0.1f});
  signum.groups = {sk::optim::no_decay_on_biases_and_norms(), sk::optim::frozen("1.bias")};
  // [end]
  CHECK(learns(signum));
}

TEST_CASE("an optimizer and a transform of one's own keep a gradient that is no number in sight", "[guide]") {
  const sk::optim::UpdateRates<float> at{.lr = 0.25f};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto signum = [&](float gradient) {
    float value = 1, state = 0;
    own::Signum{}.element(at, gradient, value, &state);
    return value;
  };
  CHECK(signum(0.5f) == 0.75f);
  CHECK(signum(-0.5f) == 1.25f);
  CHECK(signum(0) == 1);
  CHECK(std::isnan(signum(nan)));
  float none = 0;
  const auto quantize = [&](float gradient) { return own::Quantize{.step = 0.25f}.element(at, gradient, 1.0f, &none); };
  CHECK(quantize(-0.3f) == -0.25f);
  CHECK(quantize(0.4f) == 0.5f);
  CHECK(std::isnan(quantize(nan)));
}
