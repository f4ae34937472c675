// SPDX-License-Identifier: Apache-2.0
// What a loop by hand gives to the wrong model, loss or optimizer is refused before a kernel reads it, by fit's own sentences.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/binary_cross_entropy.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/weighted_losses.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
template <int In, int Out> using Linear = sk::Model<nn::Linear<Out>, sk::Shape<In>>;

/// Four samples of so many values; with `out` values each, or with labels.
auto numbers(int in, int out) {
  std::vector<float> x(static_cast<std::size_t>(4 * in), 0.5f), y(static_cast<std::size_t>(4 * out), 1.f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.01f * static_cast<float>(i % 7);
  return sk::data::from_tensors(x, sk::Extents{1, {in}}, y);
}
auto labels(int in) {
  return sk::data::from_tensors(std::vector<float>(static_cast<std::size_t>(4 * in), 0.5f), sk::Extents{1, {in}},
                                std::vector<std::int32_t>{0, 1, 0, 1});
}
template <class Set, class F> void with_batch(const Set& set, F&& f) {
  sk::data::Loader<> loader{set, {.batch = 4, .shuffle = false, .prefetch = sk::data::Prefetch::off}};
  for (const auto& batch : loader.epoch(0)) f(batch);
}
/// What forward_backward, evaluate and fit say of a data set for this model and loss.
template <class Model, class Loss, class Set>
void check_refused(Loss loss, const Set& set, const std::string& sentence, bool also_evaluated = true) {
  Model model{sk::Seed{1}};
  sk::Executor executor{model, loss, {.capacity = 4, .threads = 1}};
  with_batch(set, [&](const auto& batch) {
    CHECK_THROWS_WITH(executor.forward_backward(batch), Catch::Contains(sentence));
    if (also_evaluated) CHECK_THROWS_WITH(executor.evaluate(batch), Catch::Contains(sentence));
  });
  sk::train::TrainStep step{model, loss, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 4, .threads = 1});
  with_batch(set, [&](const auto& batch) { CHECK_THROWS_WITH(step.step(batch), Catch::Contains(sentence)); });
  std::string of_fit = sentence;
  if (const auto at = of_fit.find("the data set"); at != of_fit.npos) of_fit.replace(at, 12, "the training data set");
  sk::Trainer trainer{model, loss, sk::optim::Sgd{.lr = 0.1f}};
  CHECK_THROWS_WITH(trainer.fit(set, {.batch = 4, .progress = false}), Catch::Contains(of_fit));
}
std::vector<double> gradient_of(auto& model) { return {model.gradients().begin(), model.gradients().end()}; }
void check_factor(const std::vector<double>& a, const std::vector<double>& b, double factor) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] == Approx(factor * b[i]).epsilon(1e-5).margin(1e-7));
    sum += std::abs(b[i]);
  }
  CHECK(sum > 0);
}

}  // namespace

TEST_CASE("a batch with a label that is no class changes nothing in a loop by hand: statistics stay, and gradients that add up",
          "[nn]") {
  sk::Model<nn::Sequential<nn::BatchNorm<>, nn::Linear<2>>, sk::Shape<3>> model{sk::Seed{1}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 4, .threads = 2}};
  const auto values = [](const auto& arena) { return std::vector<float>(arena.begin(), arena.end()); };
  auto set = labels(3);
  with_batch(set, [&](const auto& batch) { executor.forward_backward(batch); });
  const auto statistics = values(model.buffers()), gradients = values(model.gradients());
  std::vector<std::int32_t> wrong{0, 1, 0, 2};
  with_batch(set, [&](auto batch) {
    batch.labels = wrong.data();
    const auto refused = Catch::Contains("sample 3 of the data set has the label 2; the network has 2 outputs");
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.accumulate = true}), refused);
    CHECK_THROWS_WITH(executor.evaluate(batch), refused);
  });
  CHECK(values(model.buffers()) == statistics);
  CHECK(values(model.gradients()) == gradients);
}

TEST_CASE("a batch of a loader that has served a later one into its memory is refused", "[nn]") {
  using Model = Linear<3, 2>;
  Model model{sk::Seed{1}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 2, .threads = 1}};
  sk::train::TrainStep step{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 2, .threads = 1});
  const auto set = labels(3);
  sk::data::Loader<> loader{set, {.batch = 2, .prefetch = sk::data::Prefetch::off}};
  std::vector<sk::data::Batch<>> all;
  for (const auto& batch : loader.epoch(0)) all.push_back(batch);
  const auto refused = Catch::Contains("a batch of the data set is used after later ones");
  CHECK_THROWS_WITH(executor.forward_backward(all[0]), refused);
  CHECK_THROWS_WITH(executor.evaluate(all[0]), refused);
  CHECK_THROWS_WITH(step.step(all[0]), refused);
  CHECK_NOTHROW(executor.forward_backward(all[1]));
  CHECK_NOTHROW(step.step(all[1]));
}

TEST_CASE("A batch of other samples than the model's is refused", "[nn]") {
  check_refused<Linear<600, 40>>(nn::Mse{}, numbers(2, 1), "samples are Shape<2>, the model takes Shape<600>");
  check_refused<Linear<2, 1>>(nn::Mse{}, numbers(600, 40), "samples are Shape<600>, the model takes Shape<2>");
  check_refused<sk::Model<nn::Linear<1>, sk::Shape<6>>>(nn::Mse{}, numbers(8, 1),
                                                        "samples are Shape<8>, the model takes Shape<6>");
}

TEST_CASE("A batch by hand whose rows are too short is refused", "[nn]") {
  Linear<20, 3> model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  const std::vector<float> x(80), y(80);
  CHECK_THROWS_WITH(executor.forward_backward(sk::BatchView<float>{x.data(), 16, nullptr, y.data(), 16, 1}),
                    Catch::Contains("the batch's .pitch is 16, and the network's input has 20 values"));
  CHECK_THROWS_WITH(executor.forward_backward(sk::BatchView<float>{x.data(), 20, nullptr, y.data(), 2, 1}),
                    Catch::Contains("the batch's .target_pitch is 2, and a target of the loss has 3 values"));
  CHECK_THROWS_WITH(executor.forward_backward(sk::BatchView<float>{nullptr, 20, nullptr, y.data(), 3, 1}),
                    Catch::Contains("the batch has no samples: .x is null"));
  CHECK_THROWS_WITH(executor.forward_backward(sk::BatchView<float>{x.data(), 20, nullptr, y.data(), 3, -1}),
                    Catch::Contains("the batch has -1 samples: .count is how many there are, 0 or more"));
  CHECK(executor.forward_backward(sk::BatchView<float>{}).weight == 0);  // a rank that has none left
}

TEST_CASE("Targets of another kind or length are refused, and none", "[nn]") {
  check_refused<Linear<3, 2>>(
      nn::Mse{}, labels(3),
      "the loss compares with numbers, the targets of the data set are class labels, as integers are: give it "
      "floats (from_tensors of float; in a file: write y as floats)");
  check_refused<Linear<3, 2>>(nn::CrossEntropy{}, numbers(3, 1),
                              "the loss compares with class labels, the targets of the data set are numbers: give it integers "
                              "(from_tensors of int; in a file: write y as integers)");
  check_refused<Linear<3, 2>>(nn::Mse{}, numbers(3, 4), "the data set has 4 values, the network gives 2");
  const auto none = sk::data::from_tensors(std::vector<float>(12, 0.5f), sk::Extents{1, {3}});
  check_refused<Linear<3, 2>>(nn::Mse{}, none, "the data set has no targets: give it target vectors", false);
  check_refused<Linear<3, 2>>(nn::Mse{}, none, "as from_tensors(x, extents, y), from_npy(x, y) and Hdf5Options::targets do",
                              false);
  check_refused<Linear<3, 2>>(nn::CrossEntropy{}, none, "the data set has no targets: give it labels", false);
  // labels beside numbers: the join makes numbers of them
  check_refused<Linear<6, 2>>(nn::CrossEntropy{}, sk::data::join(labels(3), numbers(3, 1)),
                              "graph_loss gives each part of them a loss of its own");
}

TEST_CASE("Without .scale the gradient is that of the mean, in every form of the call", "[nn]") {
  const auto set = numbers(3, 2);
  Linear<3, 2> model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  with_batch(set, [&](const auto& batch) {
    executor.forward_backward(batch);
    const auto mean = gradient_of(model);
    executor.forward_backward(batch, {.accumulate = false});
    check_factor(gradient_of(model), mean, 1);
    executor.forward_backward(batch, {.scale = 1});
    check_factor(gradient_of(model), mean, 8);  // four samples of two outputs
  });
}

TEST_CASE("Calls that say the samples of their step add up to the gradient of its mean", "[nn]") {
  const auto set = numbers(3, 2);
  Linear<3, 2> model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  with_batch(set, [&](const auto& batch) {
    executor.forward_backward(batch);
    const auto mean = gradient_of(model);
    executor.forward_backward(batch.part(0, 1), {.of_samples = 4});
    const nn::LossSums sums = executor.forward_backward(batch.part(1, 4), {.of_samples = 4, .accumulate = true});
    check_factor(gradient_of(model), mean, 1);
    CHECK(sums.weight == 8);  // of both calls
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.scale = 1, .of_samples = 4}), Catch::Contains("give one of them"));
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.of_samples = -4}), Catch::Contains(".of_samples is -4"));
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.of_samples = 3}),
                      Catch::Contains(".of_samples is 3, and this call alone has 4 samples"));
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.scale = no_number}), Catch::Contains("forward_backward: .scale is nan"));
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.loss_scale = 1024}),
                      Catch::Contains(".loss_scale is 1024: only models of 16-bit activations scale their loss"));
  });
}

TEST_CASE("Targets of BinaryCrossEntropy are probabilities", "[nn]") {
  const auto set = [](float target) {
    return sk::data::from_tensors(std::vector<float>(8, 0.5f), sk::Extents{1, {2}}, std::vector<float>{0, 1, 0.5f, target});
  };
  using Model = Linear<2, 1>;
  for (const float target : {2.f, -1.f, 255.f})
    check_refused<Model>(nn::BinaryCrossEntropy{}, set(target),
                         sk::text("sample 3 of the data set has the target {}; BinaryCrossEntropy takes 0 to 1", target));
  check_refused<Model>(nn::weighted_losses<Model>(nn::on(nn::Mse{}), nn::on(nn::BinaryCrossEntropy{})), set(2),
                       "has the target 2; BinaryCrossEntropy takes 0 to 1");
  Linear<2, 1> model;
  sk::Executor executor{model, nn::BinaryCrossEntropy{}, {.capacity = 4, .threads = 1}};
  with_batch(set(1), [&](const auto& batch) { CHECK_NOTHROW(executor.forward_backward(batch)); });
}

TEST_CASE("An optimizer refuses the model of another layout", "[nn]") {
  Linear<2, 1> tiny{sk::Seed{1}};
  Linear<600, 40> large{sk::Seed{1}};
  sk::optim::BoundOptimizer of_tiny{sk::optim::Adam{}, tiny}, of_large{sk::optim::Adam{}, large};
  CHECK_THROWS_WITH(of_large.step(tiny), Catch::Contains("each model has an optimizer of its own"));
  CHECK_THROWS_WITH(of_tiny.step(large), Catch::Contains("each model has an optimizer of its own"));
  // as many parameters, at other places
  sk::Model<nn::Sequential<nn::Linear<16>, nn::Linear<32>>, sk::Shape<32>> down;
  sk::Model<nn::Sequential<nn::Linear<32>, nn::Linear<16>>, sk::Shape<32>> across;
  sk::optim::BoundOptimizer of_down{sk::optim::Adam{}, down};
  CHECK_THROWS_WITH(of_down.step(across), Catch::Contains("each model has an optimizer of its own"));
  (void)down.gradients();
  CHECK_NOTHROW(of_down.step(down));
}

TEST_CASE("A step by hand refuses gradients that are not there, and those of a step that has been made", "[nn]") {
  Linear<2, 1> model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.1f}, model};
  const auto used = Catch::Contains(
      "step: these gradients have made a step already: executor.forward_backward(batch) makes new ones before each step");
  const auto refused = Catch::Contains(
      "forward_backward: .accumulate adds to gradients that have made a step already: leave it out in the first call of each "
      "step");
  CHECK_THROWS_WITH(optimizer.step(model), Catch::Contains("step: the model has no gradients: executor.forward_backward(batch) "
                                                           "makes them before each step"));
  with_batch(numbers(2, 1), [&](const auto& batch) {
    executor.forward_backward(batch);
    executor.forward_backward(batch, {.accumulate = true});
    CHECK_NOTHROW(optimizer.step(model));
    CHECK_THROWS_WITH(optimizer.step(model), used);
    CHECK_THROWS_WITH(executor.forward_backward(batch, {.accumulate = true}), refused);
    CHECK_THROWS_WITH(optimizer.step(model), used);
    executor.forward_backward(batch);
    CHECK_NOTHROW(optimizer.step(model));
    std::fill(model.gradients().begin(), model.gradients().end(), 0.5f);  // of one's own
    CHECK_NOTHROW(optimizer.step(model));
    (void)model.gradients();
    executor.forward_backward(batch, {.accumulate = true});
    CHECK_NOTHROW(optimizer.step(model));
  });
}

TEST_CASE("Parts of a step that overwrite one another are refused", "[nn]") {
  Linear<2, 1> model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4, .threads = 1}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.1f}, model};
  with_batch(numbers(2, 1), [&](const auto& batch) {
    const auto part = [&](bool accumulate = false) {
      executor.forward_backward(batch.part(0, 2), {.of_samples = 4, .accumulate = accumulate});
    };
    for (int step = 0; step < 2; ++step) {
      part();
      CHECK_THROWS_WITH(part(),
                        "forward_backward: this call has 2 of the 4 samples of a step (.of_samples), and would overwrite "
                        "the gradients of the call before, which nothing has used: say .accumulate = true from the "
                        "second call of each step on; or use them first, optimizer.step(model), or model.gradients()");
      part(true);
      optimizer.step(model);
    }
    part();
    optimizer.step(model);  // a part is a step: other ranks have the others
    part(), part(true);
    CHECK_NOTHROW(part());  // what is begun anew
    CHECK_NOTHROW(executor.forward_backward(batch));
    CHECK_NOTHROW(part());
    (void)std::as_const(model).gradients();  // somebody uses them
    CHECK_NOTHROW(part());
    CHECK_NOTHROW(part());
  });
}

TEST_CASE("An optimizer refuses another model of the same type, and knows its own wherever it moves", "[nn]") {
  Linear<2, 1> mine{sk::Seed{1}}, other{sk::Seed{2}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.1f}, mine};
  CHECK_THROWS_WITH(optimizer.step(other), Catch::Contains("made with another model"));
  (void)mine.gradients(), (void)other.gradients();  // somebody writes them
  CHECK_NOTHROW(optimizer.step(mine));
  auto same = mine.with_input<sk::Shape<2>>();
  (void)same.gradients();
  CHECK_NOTHROW(optimizer.step(same));
  Linear<2, 1> moved = std::move(mine);
  (void)moved.gradients();
  CHECK_NOTHROW(optimizer.step(moved));
  optimizer = sk::optim::BoundOptimizer{sk::optim::Sgd{.lr = 0.1f}, other};
  CHECK_NOTHROW(optimizer.step(other));
  CHECK_THROWS_WITH(optimizer.step(moved), Catch::Contains("made with another model"));
}

TEST_CASE("A step and an executor refuse options that fit refuses", "[nn]") {
  Linear<2, 1> model{sk::Seed{1}};
  sk::optim::BoundOptimizer optimizer{sk::optim::Adam{}, model};
  for (const double lr : {-1.0, no_number})
    CHECK_THROWS_WITH(optimizer.step(model, {.lr = lr}), Catch::Contains("step: .lr is "));
  for (const double norm : {-1.0, no_number})
    CHECK_THROWS_WITH(optimizer.step(model, {.clip_norm = norm}), Catch::Contains("the largest norm that gradients keep"));
  (void)model.gradients();
  CHECK_NOTHROW(optimizer.step(model, {.lr = 0}));
  CHECK_THROWS_WITH((sk::Executor{model, nn::Mse{}, {.capacity = 1, .threads = -2}}),
                    Catch::Contains("Executor: .threads is -2"));
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  CHECK_THROWS_WITH(step.reserve({.capacity = 4, .threads = -2}), Catch::Contains(".threads is -2"));
  step.reserve({.capacity = 4, .threads = 1});
  with_batch(numbers(2, 1), [&](const auto& batch) { CHECK_NOTHROW(step.step(batch)); });
}
