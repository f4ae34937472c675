// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/optimizer.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/trainer.hpp>

using namespace skein;

namespace {
// An optimizer of a user, without decay, groups and checks: the sign of the gradient.
struct SignDescent {
  float lr = 0.5f;
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const optim::UpdateCall<Scalar, Device>& call) const {
    for (long i = call.begin; i < call.end; ++i) {
      const Scalar g = call.gradients[0][i];
      call.parameters[i] -= static_cast<Scalar>(call.lr) * static_cast<Scalar>((g > 0) - (g < 0));
    }
  }
};
struct Stateless {
  float lr = 0.1f;
  template <class Scalar, class Device> void apply(const optim::UpdateCall<Scalar, Device>&) const {}
};
// What a program may write for element(), and what looks like it and trains nothing.
struct WithElement {
  float lr = 0.1f;
  static constexpr int state_arrays() { return 0; }
};
template <class S> using At = optim::UpdateRates<S>;
struct OfReferences : WithElement {
  template <class S> constexpr void element(const At<S>& at, S gradient, S& value, S*) const { value -= at.lr * gradient; }
};
struct OfFloats : WithElement {
  void element(const At<float>& at, const float& gradient, float& value, float*) const { value -= at.lr * gradient; }
};
struct OfAuto : WithElement {
  constexpr void element(const auto& at, auto gradient, auto& value, auto*) const { value -= at.lr * gradient; }
};
struct OfForwarding : WithElement {
  constexpr auto element(auto&& at, auto&& gradient, auto&& value, auto*) const { value -= at.lr * gradient; }
};
struct OfCopies : WithElement {
  template <class S> constexpr void element(const At<S>& at, S gradient, S value, S*) const { value -= at.lr * gradient; }
};
struct OfFloatCopies : WithElement {
  void element(const At<float>& at, float gradient, float value, float*) const { value -= at.lr * gradient; }
};
struct OfAutoCopies : WithElement {
  constexpr void element(const auto& at, auto gradient, auto value, auto*) const { value -= at.lr * gradient; }
};
struct OfConstReferences : WithElement {
  template <class S> constexpr void element(const At<S>&, S, const S&, S*) const {}
};
struct OfConstAuto : WithElement {
  constexpr void element(const auto&, auto, const auto&, auto*) const {}
};
struct Exchanged : WithElement {
  template <class S> constexpr void element(const At<S>& at, S& value, S gradient, S*) const { value -= at.lr * gradient; }
};
template <class... Os> constexpr bool all_are_optimizers = (optim::Optimizer<Os> && ...);
template <class... Os> constexpr bool one_is_an_optimizer = (optim::Optimizer<Os> || ...);
}  // namespace

TEST_CASE("The optimizer concept takes a user's own type and no less", "[optim]") {
  optim::assert_optimizer<SignDescent>();
  STATIC_REQUIRE(optim::Optimizer<SignDescent>);
  STATIC_REQUIRE_FALSE(optim::Optimizer<Stateless>);
  STATIC_REQUIRE_FALSE(optim::Optimizer<float>);
}

TEST_CASE("An element() that writes its value into a copy is none of an optimizer", "[optim]") {
  STATIC_REQUIRE(all_are_optimizers<OfReferences, OfFloats, OfAuto, OfForwarding>);
  STATIC_REQUIRE_FALSE(one_is_an_optimizer<OfCopies, OfFloatCopies, OfAutoCopies, OfConstReferences, OfConstAuto, Exchanged>);
}

TEST_CASE("What a user's optimizer leaves out has a default", "[optim]") {
  CHECK(optim::weight_decay_of(SignDescent{}) == 0);
  CHECK(optim::groups_of(SignDescent{}).empty());
  CHECK_NOTHROW(optim::check(SignDescent{}));
}

TEST_CASE("A user's optimizer runs over ranges", "[optim]") {
  float p[4] = {1, 1, 1, 1};
  const float g[4] = {3, -3, 0, 3};
  const float* gradients[] = {g};
  optim::UpdateCall<float, Cpu> call;
  call.parameters = p;
  call.gradients = gradients;
  call.end = 4;
  call.lr = 0.5f;
  const optim::ParameterGroupRange ranges[] = {{0, 3}, {3, 4, 1, 1, true}};
  optim::update(SignDescent{}, std::span<const optim::ParameterGroupRange>(ranges), call);
  CHECK(p[0] == 0.5f);
  CHECK(p[1] == 1.5f);
  CHECK(p[2] == 1.0f);
  CHECK(p[3] == 1.0f);
}

TEST_CASE("A loop by hand of forward_backward and step gives what fit gives, with and without clipping", "[optim]") {
  namespace sk = skein;
  using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<3>, sk::nn::Linear<2>>, sk::Shape<4>, sk::Cpu, double>;
  std::vector<double> x(12 * 4), y(12 * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = sk::random_uniform(1, 1, i);
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {4}}, y);
  for (const double clip : {0.0, 0.05}) {
    Model fitted{sk::Seed{3}}, model{sk::Seed{3}};
    const sk::optim::Adam adam{.lr = 0.03f};
    sk::Trainer trainer{fitted, sk::nn::Mse{}, adam};
    trainer.fit(data, {.epochs = 5, .batch = 5, .clip_norm = clip, .progress = false, .loader = {.shuffle = false}});

    sk::Executor executor{model, sk::nn::Mse{}, {.capacity = 5, .threads = 1}};
    sk::optim::BoundOptimizer optimizer{adam, model};
    sk::data::Loader<double> loader{data, {.batch = 5, .shuffle = false}};
    for (int epoch = 0; epoch < 5; ++epoch)
      for (const auto& batch : loader.epoch(epoch)) {
        executor.forward_backward(batch);
        optimizer.step(model, {.clip_norm = clip});
      }
    for (std::size_t i = 0; i < model.parameters().size; ++i)
      CHECK(model.parameters()[i] == Approx(fitted.parameters()[i]).epsilon(1e-12));
    const double before = model.parameters()[0];
    (void)model.gradients();
    optimizer.step(model, {.lr = 1});  // another rate, the same gradients
    CHECK(std::abs(model.parameters()[0] - before) > 0.02);
    const double last = model.parameters()[0];
    (void)model.gradients();
    optimizer.step(model, {.lr = 0});  // where a schedule ends: no rate is not the optimizer's own
    CHECK(model.parameters()[0] == last);
  }
}

TEST_CASE("A step that is refused is not counted", "[optim]") {
  namespace sk = skein;
  using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<4>>;
  const auto data = sk::data::from_tensors(std::vector<float>(8, 0.5f), sk::Extents{1, {4}}, std::vector<float>(4, 1.0f));
  const auto chain = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::Adam{.lr = 0.1f});
  Model one{sk::Seed{3}}, other{sk::Seed{3}};
  for (Model* model : {&one, &other}) {
    sk::Executor executor{*model, sk::nn::Mse{}, {.capacity = 2, .threads = 1}};
    sk::optim::BoundOptimizer optimizer{chain, *model};
    sk::data::Loader<float> loader{data, {.batch = 2}};
    for (const auto& batch : loader.epoch(0)) executor.forward_backward(batch);
    if (model == &other) CHECK_THROWS_WITH(optimizer.step(*model, {.clip_norm = 1}), Catch::Contains("would clip twice"));
    optimizer.step(*model);  // Adam's first step is as long as the rate, a second one would be shorter
  }
  for (std::size_t i = 0; i < one.parameters().size; ++i) CHECK(other.parameters()[i] == one.parameters()[i]);
}

TEST_CASE("A loop by hand goes on with the bits of one that was not interrupted, where it keeps weights, arrays and steps",
          "[optim]") {
  namespace sk = skein;
  using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<4>>;
  const auto data = sk::data::from_tensors(std::vector<float>(8, 0.5f), sk::Extents{1, {4}}, std::vector<float>(4, 1.0f));
  Model whole{sk::Seed{3}}, later{sk::Seed{4}};
  sk::Executor executor{whole, sk::nn::Mse{}, {.capacity = 2, .threads = 1}},
      again{later, sk::nn::Mse{}, {.capacity = 2, .threads = 1}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 0.1f}, whole}, resumed{sk::optim::Adam{.lr = 0.1f}, later};
  const auto step = [&](auto& run, auto& with, Model& model) {
    sk::data::Loader<float> loader{data, {.batch = 2}};
    for (const auto& batch : loader.epoch(0)) run.forward_backward(batch), with.step(model);
  };
  for (int i = 0; i < 5; ++i) step(executor, optimizer, whole);
  {
    const auto weights = later.modify();
    std::copy(whole.parameters().begin(), whole.parameters().end(), weights.begin());
  }
  for (int k = 0; k < optimizer.arrays(); ++k)
    std::copy(optimizer.array(k).begin(), optimizer.array(k).end(), resumed.array(k).begin());
  CHECK(optimizer.steps() == 5);
  resumed.set_steps(optimizer.steps());
  step(executor, optimizer, whole), step(again, resumed, later);
  for (std::size_t i = 0; i < whole.parameters().size; ++i) CHECK(later.parameters()[i] == whole.parameters()[i]);
}
