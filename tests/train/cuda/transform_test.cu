// SPDX-License-Identifier: Apache-2.0
// Chains of gradient transforms on a GPU are the Cpu's: passes and norms are captured with the step, transforms of tensors run
// one parameter after the other.
#include <catch2/catch.hpp>

#include <skein/optim/adagrad.hpp>
#include <skein/optim/lion.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/clip_value.hpp>
#include <skein/optim/transform/lamb.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/optim/transform/muon.hpp>

#include "support/own_optimizers.hpp"
#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Mlp = nn::Sequential<nn::Linear<24>, nn::Relu, nn::Linear<17>, nn::Tanh, nn::Linear<5>>;
using In = sk::Shape<13>;

/// Updates are launched kernel by kernel: what asks for a number cannot be captured.
template <class Optimizer> void agree_launched(const Optimizer& optimizer, twins::Plan plan = {}) {
  const auto here = twins::run<Mlp, In, double, sk::Cpu>(nn::CrossEntropy{}, optimizer, plan);
  const auto there = twins::run<Mlp, In, double, sk::Cuda>(nn::CrossEntropy{}, optimizer, plan);
  CHECK(twins::apart(here.losses, there.losses) < 1e-12);
  CHECK(twins::apart(here.parameters, there.parameters) < 1e-12);
  CHECK(twins::apart(here.state, there.state) < 1e-11);
  CHECK((plan.accumulate > 1 || there.replays == 0));  // batches before the last of an accumulation have no update
  CHECK(there.note == "steps are launched kernel by kernel, since a transform of tensors may wait for numbers");
}
}  // namespace

namespace transform_test {
/// A mean of the gradients so far: an element with a state.
struct Smooth {
  static constexpr auto needs = optim::Needs::element;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr S element(const optim::UpdateRates<S>&, S gradient, S, S* state) const {
    return state[0] = S(0.5) * (state[0] + gradient);
  }
};
/// Half of what the norm says: a transform of the user's.
struct HalfNorm {
  static constexpr auto needs = optim::Needs::global;
  constexpr double factor(double norm) const { return 0.5 / (0.1 + norm); }
};
}  // namespace transform_test

TEST_CASE("A norm behind elements is taken on the GPU, in steps that are replayed too", "[train][cuda]") {
  using namespace transform_test;
  const optim::Sgd sgd{.lr = 0.1f, .momentum = 0.9};
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::chain(optim::ClipValue{0.01f}, optim::ClipNorm{0.02f}, sgd));
  twins::agree<Mlp, In, double>(nn::CrossEntropy{},
                                optim::chain(optim::ClipNorm{0.2f}, Smooth{}, HalfNorm{}, Smooth{}, optim::ClipNorm{0.3f}, sgd),
                                {.steps = 24, .accumulate = 2});
  auto grouped = optim::chain(Smooth{}, HalfNorm{}, optim::Adam{.lr = 0.01f});
  grouped.groups = {optim::learning_rate("2.*", 0.5f), optim::frozen("0.weight")};
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, grouped);
}

TEST_CASE("LARS on a GPU is the Cpu's", "[train][cuda]") {
  using namespace transform_test;
  const optim::Sgd sgd{.lr = 0.3f, .momentum = 0.9};
  agree_launched(optim::chain(optim::Lars{.trust = 0.05f, .weight_decay = 0.01f}, sgd));
  agree_launched(optim::chain(optim::ClipNorm{0.2f}, Smooth{}, optim::Lars{.trust = 0.05f}, optim::ClipNorm{0.02f}, sgd),
                 {.steps = 12, .accumulate = 2});
  auto grouped = optim::chain(optim::Lars{.trust = 0.05f, .weight_decay = 0.01f}, sgd);
  grouped.groups = {optim::weight_decay("2.*", 0.5f), optim::frozen("0.weight")};
  agree_launched(grouped);
}

TEST_CASE("LAMB and Muon on a GPU are the Cpu's", "[train][cuda]") {
  agree_launched(optim::chain(optim::Lamb{.weight_decay = 0.01f}, optim::Sgd{.lr = 0.05f}));
  auto grouped = optim::chain(optim::Lamb{.weight_decay = 0.01f}, optim::Sgd{.lr = 0.05f});
  grouped.groups = {optim::weight_decay("2.*", 0.5f), optim::frozen("0.weight")};
  agree_launched(grouped);
  agree_launched(optim::chain(optim::Muon{}, optim::Sgd{.lr = 0.05f, .weight_decay = 0.01f}));
  agree_launched(optim::chain(optim::Muon{.nesterov = false, .scale = optim::MuonScale::original}, optim::Sgd{.lr = 0.05f}),
                 {.steps = 12, .accumulate = 2});
}

TEST_CASE("Adagrad and Lion on a GPU are the Cpu's, in steps that are replayed too", "[train][cuda]") {
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Adagrad{.lr = 0.05f, .lr_decay = 0.1, .initial_accumulator = 0.2});
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Lion{.lr = 0.01f, .weight_decay = 0.1f});
}

TEST_CASE("A transform of one's own is one text for both devices", "[train][cuda]") {
  agree_launched(optim::chain(own::Centralize{}, optim::Sgd{.lr = 0.1f}));
}
