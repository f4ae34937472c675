// SPDX-License-Identifier: Apache-2.0
// A chain as an optimizer: its pass, its state, its groups. tests/train/step/transform_test.cpp trains with stages.
#include <catch2/catch.hpp>

#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/step_checks.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/clip_value.hpp>

#include "support/optimizer_harness.hpp"

namespace optim = skein::optim;

namespace {
/// A running mean of the gradient in its place, with state of its own.
struct Smooth {
  float keep = 0.5f;
  static constexpr auto needs = optim::Needs::element;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr S element(const optim::UpdateRates<S>&, S gradient, S, S* state) const {
    return state[0] = static_cast<S>(keep) * state[0] + gradient;
  }
};
/// Weight decay as PyTorch's optimizers have it, by the group's factor.
struct AddDecay {
  static constexpr auto needs = optim::Needs::element;
  template <class S> constexpr S element(const optim::UpdateRates<S>& at, S gradient, S value, S*) const {
    return gradient + at.weight_decay * value;
  }
};
/// An optimizer by its element, which counts its steps in its state.
struct Counting {
  float lr = 0.25f, weight_decay = 0;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr void element(const optim::UpdateRates<S>& at, S gradient, S& value, S* state) const {
    state[0] += gradient;
    value -= at.lr * gradient * at.step;
  }
};
template <class O> using Run = test::OptimizerRun<float, O>;
template <class A, class B> bool same(const A& a, const B& b) {
  Run<A> one(a);
  Run<B> other(b);
  for (int t = 1; t <= 7; ++t) {
    one.step(t, {5, 16}, 2, 0.5);
    other.step(t, {}, 2, 0.5);
  }
  return one.parameters == other.parameters;
}
}  // namespace

TEST_CASE("A chain of an optimizer alone is that optimizer, to the bit", "[optim]") {
  CHECK(same(optim::chain(optim::Sgd{.lr = 0.1f, .momentum = 0.9}), optim::Sgd{.lr = 0.1f, .momentum = 0.9}));
  CHECK(same(optim::chain(optim::ClipNorm{3}, optim::Adam{}), optim::Adam{}));  // its norm is the step's affair
  STATIC_REQUIRE(optim::Optimizer<decltype(optim::chain(optim::Sgd{}))>);
}

TEST_CASE("Elementwise transforms keep the laws of a pass, within any optimizer's", "[optim]") {
  test::keeps_the_laws(optim::chain(optim::ClipValue{0.2f}, optim::Sgd{.lr = 0.05f, .momentum = 0.9}));
  test::keeps_the_laws(optim::chain(Smooth{}, optim::ClipValue{0.2f}, optim::Adam{.lr = 0.05f}));
  test::keeps_the_laws(optim::chain(Smooth{}, Smooth{0.25f}, Counting{.lr = 0.01f}));
}

TEST_CASE("Transforms act in their order, each with its own state", "[optim]") {
  const optim::Sgd plain{.lr = 0.1f};
  CHECK_FALSE(test::differ(optim::chain(Smooth{0.9f}, plain), optim::Sgd{.lr = 0.1f, .momentum = 0.9f}));
  CHECK_FALSE(test::differ(optim::chain(AddDecay{}, optim::Sgd{.lr = 0.1f, .weight_decay = 0.5f}),
                           optim::Sgd{.lr = 0.1f, .weight_decay = 1.0f}));
  CHECK(
      test::differ(optim::chain(Smooth{}, optim::ClipValue{0.2f}, plain), optim::chain(optim::ClipValue{0.2f}, Smooth{}, plain)));
  const auto chain = optim::chain(Smooth{}, optim::ClipValue{0.2f}, Smooth{0.1f}, optim::Sgd{.momentum = 0.5});
  CHECK(chain.state_arrays() == 3);
  Run<std::remove_const_t<decltype(chain)>> run(chain);
  run.step(1);
  CHECK(run.state[0] != run.state[1]);
  CHECK(run.state[1] == run.state[2]);  // the first step's momentum is the gradient that came out
}

TEST_CASE("ClipValue is PyTorch's clip_grad_value_", "[optim]") {
  const optim::ClipValue clip{0.25f};
  for (const auto& [from, to] : {std::pair{0.2f, 0.2f}, {0.3f, 0.25f}, {-7.0f, -0.25f}, {0.0f, 0.0f}})
    CHECK(clip.element(optim::UpdateRates<float>{}, from, 1.0f, static_cast<float*>(nullptr)) == to);
  CHECK_THROWS_WITH(optim::chain(optim::ClipValue{0}, optim::Sgd{}).check(), Catch::Contains("ClipValue{.limit = 0"));
  CHECK_THROWS_WITH(optim::chain(optim::ClipNorm{-1}, optim::Sgd{}).check(), Catch::Contains("ClipNorm{.max_norm = -1"));
  CHECK_THROWS_WITH(optim::chain(optim::ClipNorm{1}, optim::Sgd{.lr = -1}).check(), Catch::Contains("Sgd{.lr = -1"));
}

TEST_CASE("A chain has the rate, the decay and the groups of its optimizer", "[optim]") {
  auto chain = optim::chain(optim::ClipNorm{2}, optim::Sgd{.lr = 0.3f, .weight_decay = 0.1f, .groups = optim::frozen("0.*")});
  CHECK(chain.lr == 0.3f);
  CHECK(optim::weight_decay_of(chain) == 0.1f);
  CHECK(optim::groups_of(chain).rules.size() == 1);
  CHECK(optim::clip_norm_of(chain, 0) == 2);
  CHECK_THROWS_WITH(optim::clip_norm_of(chain, 1.0), Catch::Contains("would clip twice: leave one of them out"));
  CHECK(optim::clip_norm_of(optim::Sgd{}, 1.0) == 1.0);
  auto own = optim::chain(Counting{});
  own.groups = optim::frozen("1.*");
  CHECK(optim::groups_of(own).rules.size() == 1);
  own.lr = -1;
  CHECK_THROWS_WITH(own.check(), "chain{.lr = -1}: the rate must not be negative");
  chain.weight_decay = -1;
  CHECK_THROWS_WITH(chain.check(), "chain{.weight_decay = -1}: weight decay must not be negative");
}

TEST_CASE("What makes a stage is known of the type", "[optim]") {
  const auto fused = optim::chain(optim::ClipNorm{1}, optim::ClipValue{}, optim::Sgd{});
  STATIC_REQUIRE_FALSE(optim::has_stages<std::remove_const_t<decltype(fused)>>);
  const auto norm = optim::chain(optim::ClipValue{}, optim::ClipNorm{1}, optim::Sgd{});
  STATIC_REQUIRE(optim::has_stages<std::remove_const_t<decltype(norm)>>);
  STATIC_REQUIRE_FALSE(optim::needs_tensors<std::remove_const_t<decltype(norm)>>);
  STATIC_REQUIRE_FALSE(optim::HasClipNorm<std::remove_const_t<decltype(norm)>>);
}
