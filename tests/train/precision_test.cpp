// SPDX-License-Identifier: Apache-2.0
// Trainings in 16 bits: as good as in float on real digits; scaled losses, clipping, accumulation; checkpoints, which do not
// depend on the precision.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/mnist.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/averaged_model.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

#include "../support/data_sets.hpp"
#include "../support/larger.hpp"
#include "../support/loss_scale_cases.hpp"
#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace cases = loss_scale_cases;

namespace {

using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
using Mlp = nn::Sequential<nn::Flatten, nn::Linear<64>, nn::Relu, nn::Linear<10>>;

/// Test accuracy after three epochs whose rate falls to nothing, so that what is compared is where they settle.
template <class Net, class P> double accuracy(const sk::data::TrainTest& digits) {
  sk::Model<Net, sk::Shape<28, 28, 1>, sk::Cpu, P> model{sk::Seed{42}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f, .momentum = 0.9}};
  const std::int64_t steps = 3 * ((static_cast<std::int64_t>(digits.train.size()) + 31) / 32);
  const sk::History history = trainer.fit(
      digits.train,
      {.epochs = 3, .batch = 32, .validate = digits.test, .schedule = sk::optim::cosine(steps), .progress = false, .threads = 2});
  return history.back().validation.accuracy;
}
template <class Net> void as_good_as_float(const sk::data::TrainTest& digits) {
  const double wide = accuracy<Net, float>(digits), bf16 = accuracy<Net, sk::precision::bf16>(digits),
               fp16 = accuracy<Net, sk::precision::fp16>(digits);
  INFO("float " << wide << ", bf16 " << bf16 << ", fp16 " << fp16);
  CHECK(wide > 0.9);
  CHECK(bf16 > wide - 0.01);
  CHECK(fp16 > wide - 0.01);
}

/// The numbers of the steps that a callback has heard of.
struct Updates {
  std::shared_ptr<std::vector<std::int64_t>> heard = std::make_shared<std::vector<std::int64_t>>();
  void on_update(std::int64_t step) const { heard->push_back(step); }
};
template <class P> using Model = cases::Model<P>;
template <class P, class Optimizer = sk::optim::Sgd> struct Training {
  Model<P> model{sk::Seed{3}};
  sk::train::TrainStep<Model<P>, nn::Mse, Optimizer> train_step;
  explicit Training(Optimizer optimizer = {.lr = 0.1f}) : train_step(model, nn::Mse{}, optimizer, sk::parallel::SingleProcess{}) {
    train_step.reserve({.capacity = 12, .threads = 1});
  }
  std::vector<double> weights() const {
    return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
  }
};
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = support::larger(worst, a[i] - b[i]);
  return worst;
}

}  // namespace

TEST_CASE("digits are learned in 16 bits as well as in float", "[train]") {
  if (support::lacks_images("mnist")) return;
  const auto all = sk::data::mnist();
  const sk::data::TrainTest digits{all.train.take(6000), all.test.take(2000)};
  as_good_as_float<LeNet>(digits);
  as_good_as_float<Mlp>(digits);
}

TEST_CASE("small gradients reach the weights in fp16 only where the loss is scaled", "[train]") {
  // Outputs a thousandth of a thousandth from their targets: gradients of 1e-9, below fp16's smallest number, 6e-8.
  const auto moved = [](const auto& scaling, auto precision) {
    Training<decltype(precision)> t{{.lr = 1e6f}};
    if constexpr (decltype(t.model)::scales_loss) t.train_step.set_loss_scaling(scaling);
    cases::Samples samples;
    std::fill(samples.y.begin(), samples.y.end(), 0.0f);
    for (auto& p : t.model.modify()) p *= 1e-3f;
    const auto before = t.weights();
    t.train_step.step(samples.share(0, 1));
    return apart(t.weights(), before);
  };
  using sk::optim::LossScaling;
  const double right = moved(LossScaling::none(), sk::precision::fp32{});
  REQUIRE(right > 0);
  const double scaled = moved(LossScaling::fixed(65536), sk::precision::fp16{});
  CHECK(scaled == Approx(right).epsilon(0.01));
  const double plain = moved(LossScaling::none(), sk::precision::fp16{});
  CHECK(std::abs(plain - right) > 10 * std::abs(scaled - right));
  CHECK(moved(LossScaling::none(), sk::precision::bf16{}) == Approx(right).epsilon(0.05));  // float's range: no scale needed
}

TEST_CASE("the norm is clipped after the scale is taken out, and accumulated calls have one scale", "[train]") {
  const cases::Samples samples;
  Training<float> wide;
  Training<sk::precision::fp16> half;
  half.train_step.set_loss_scaling({.initial = 256, .interval = 2});
  for (int i = 0; i < 6; ++i) {
    wide.train_step.step(samples.share(0, 2), {.update = false});
    wide.train_step.step(samples.share(1, 2), {.clip_norm = 0.05, .accumulate = true});
    half.train_step.step(samples.share(0, 2), {.update = false});
    half.train_step.step(samples.share(1, 2), {.clip_norm = 0.05, .accumulate = true});
    CHECK(half.train_step.gradient_norm() == Approx(wide.train_step.gradient_norm()).epsilon(0.005));
  }
  CHECK(wide.train_step.gradient_norm() > 0.05);  // it was clipped
  CHECK(half.train_step.loss_scaler().scale() == 256 * 8);
  CHECK(half.train_step.steps() == 6);
  CHECK(apart(half.weights(), wide.weights()) < 1e-3);
}

TEST_CASE("gradients are not added to those of another scale", "[train]") {
  const cases::Samples samples;
  Training<sk::precision::fp16> t;
  t.train_step.set_loss_scaling({.initial = 256});
  t.train_step.step(samples.share(0, 2), {.update = false});
  t.train_step.set_loss_scaling({.initial = 512});
  CHECK_THROWS_WITH(t.train_step.step(samples.share(1, 2), {.accumulate = true}),
                    Catch::Contains("of which none waits for its update"));
  t.train_step.step(samples.share(0, 2), {.update = false});
  t.train_step.set_loss_scaling({.initial = 512});
  CHECK_NOTHROW(t.train_step.step(samples.share(1, 2), {.accumulate = true}));  // the same
}

TEST_CASE("a checkpoint keeps the scale, and no precision", "[train]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "half.skein";
  const cases::Samples samples;
  using Half = Model<sk::precision::fp16>;
  using Trainer = sk::Trainer<Half, nn::Mse, sk::optim::Adam>;
  Half model{sk::Seed{3}};
  Trainer trainer{model, {}, {.lr = 0.01f}};
  trainer.train_step().reserve({.capacity = 12, .threads = 1});
  trainer.train_step().set_loss_scaling({.initial = 64, .interval = 2});
  for (int i = 0; i < 3; ++i) trainer.train_step().step(samples.share(0, 1));
  trainer.train_step().step(cases::Samples(0).share(0, 1));
  trainer.save(path);

  Half again;
  Trainer other{again, {}, {.lr = 0.01f}};
  other.train_step().reserve({.capacity = 12, .threads = 1});
  other.train_step().set_loss_scaling({.initial = 8, .interval = 2});
  other.load(path);
  CHECK(other.train_step().loss_scaler().scale() == 64);  // 64, doubled, halved
  CHECK(other.train_step().loss_scaler().skipped() == 1);
  CHECK(other.train_step().loss_scaler().options().interval == 2);
  for (int i = 0; i < 3; ++i) {
    trainer.train_step().step(samples.share(0, 1));
    other.train_step().step(samples.share(0, 1));
  }
  CHECK(cases::everything(other.train_step()) == cases::everything(trainer.train_step()));
  CHECK(other.train_step().steps() == trainer.train_step().steps());

  Model<float> wide;  // the weights are float's in any precision
  sk::Trainer plain{wide, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  plain.train_step().reserve({.capacity = 12, .threads = 1});
  plain.load(path);
  CHECK(plain.train_step().steps() == 3);
  plain.save(path);
  other.load(path);  // a file of a float training: the scale stays as it is
  CHECK(other.train_step().loss_scaler().skipped() == 1);
}

TEST_CASE("a fit that goes on with a scaling of its own has the scale of the file", "[train]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "half.skein";
  const cases::Samples samples;
  const auto data = sk::data::from_tensors(samples.x, cases::In::extents, samples.y);
  using Half = Model<sk::precision::fp16>;
  using Trainer = sk::Trainer<Half, nn::Mse, sk::optim::Sgd>;
  const auto fit = [&](Trainer& t, int epochs) {
    const sk::optim::LossScaling quick{.initial = 64, .interval = 2};
    t.fit(data, {.epochs = epochs, .batch = 4, .progress = false, .threads = 1, .step = {.loss_scaling = quick}});
    return t.train_step().loss_scaler().scale();
  };
  Half straight{sk::Seed{3}}, model{sk::Seed{3}}, again;
  Trainer whole{straight, {}, {.lr = 0.01f}}, part{model, {}, {.lr = 0.01f}}, rest{again, {}, {.lr = 0.01f}};
  REQUIRE(fit(part, 1) > 64);
  part.save(path);
  rest.load(path);
  CHECK(fit(rest, 2) == fit(whole, 2));
  rest.load(path);
  rest.train_step().set_loss_scaling({.initial = 8, .greatest = 32});
  CHECK(rest.train_step().loss_scaler().scale() == 32);
  rest.train_step().set_loss_scaling(sk::optim::LossScaling::fixed(16));
  CHECK(rest.train_step().loss_scaler().scale() == 16);
}

TEST_CASE(
    "a training without scaling has no scale for one that has, and a scale that was loaded is held by the bounds of fit alone",
    "[train]") {
  const support::TemporaryFolder folder;
  const sk::optim::Sgd sgd{.lr = 0.01f};
  using Bf16 = Model<sk::precision::bf16>;
  using Fp16 = Model<sk::precision::fp16>;
  Bf16 unscaled{sk::Seed{3}};
  Fp16 model{sk::Seed{3}}, small{sk::Seed{3}};
  sk::Trainer{unscaled, nn::Mse{}, sgd}.save(folder / "bf16");
  sk::Trainer half{model, nn::Mse{}, sgd};
  half.load(folder / "bf16");
  CHECK(half.train_step().loss_scaler().scale() == 65536);

  constexpr sk::optim::LossScaling below_one{.initial = 0.25, .interval = 0, .least = 0.01};
  sk::Trainer scaled{small, nn::Mse{}, sgd};
  scaled.train_step().set_loss_scaling(below_one);
  scaled.save(folder / "fp16");
  half.load(folder / "fp16");
  CHECK(half.train_step().loss_scaler().scale() == 1);  // the least of those without options
  half.save(folder / "again");
  half.load(folder / "again");
  half.train_step().set_loss_scaling(below_one);
  CHECK(half.train_step().loss_scaler().scale() == 0.25);
}

TEST_CASE("what stands in the gradients of a frozen beginning skips no step, and is of no training before", "[train]") {
  Model<sk::precision::fp16> model{sk::Seed{3}};
  const cases::Samples good, bad(11);
  {
    sk::train::TrainStep before{model, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, sk::parallel::SingleProcess{}};
    before.reserve({.capacity = 12, .threads = 1});
    before.step(bad.share(0, 1));
    REQUIRE(before.steps() == 0);
  }
  sk::train::TrainStep frozen{model, nn::Mse{}, sk::optim::Adam{.lr = 0.01f, .groups = {sk::optim::frozen("0.*")}},
                              sk::parallel::SingleProcess{}};
  frozen.reserve({.capacity = 12, .threads = 1});
  const auto gradients = model.gradient_arena();
  CHECK(gradients.data[0] == 0);
  gradients.data[0] = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 3; ++i) frozen.step(good.share(0, 1));
  CHECK(frozen.steps() == 3);
  CHECK(std::isfinite(sk::train::norm_of_gradients(frozen)));
  gradients.data[gradients.size - 1] = 0;  // the layer behind it counts
  frozen.step(bad.share(0, 1));
  CHECK(frozen.steps() == 3);
}

TEST_CASE("callbacks hear of no update where a step was skipped, and averages have nothing of it", "[train]") {
  const cases::Samples samples;
  const auto data = sk::data::from_tensors(samples.x, cases::In::extents, samples.y);
  Model<sk::precision::fp16> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}};
  sk::train::AveragedModel average{model, sk::train::ema(0.5)};
  Updates updates;
  trainer.fit(data, {.epochs = 3,
                     .batch = 4,
                     .callbacks = {average, updates},
                     .progress = false,
                     .threads = 1,
                     .step = {.loss_scaling = sk::optim::LossScaling{.initial = 16777216}}});
  const std::int64_t steps = trainer.train_step().steps();
  REQUIRE(trainer.train_step().loss_scaler().skipped() > 0);
  REQUIRE(steps > 0);
  CHECK(average.count() == steps);
  std::vector<std::int64_t> each(static_cast<std::size_t>(steps));
  std::iota(each.begin(), each.end(), 1);
  CHECK(*updates.heard == each);
}

TEST_CASE("a step that was skipped has no part in the figures of its epoch, and an epoch without a step has none", "[train]") {
  const support::Points points(24, {1, {3}});
  const auto data = points.set();
  const auto fit = [&](int batch, int epochs, const auto& use) {
    sk::Model<nn::Linear<3>, sk::Shape<3>, sk::Cpu, sk::precision::fp16> model{sk::Seed{1}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1e-9f}};
    const sk::History history = trainer.fit(data, {.epochs = epochs,
                                                   .batch = batch,
                                                   .callbacks = {sk::train::EarlyStopping{.patience = 20}},
                                                   .progress = false,
                                                   .threads = 1,
                                                   .step = {.loss_scaling = sk::optim::LossScaling{.initial = 16777216}}});
    REQUIRE(trainer.train_step().loss_scaler().skipped() > 0);
    REQUIRE(trainer.train_step().steps() > 0);
    use(trainer, history);
  };
  fit(1, 1, [&](auto& trainer, const sk::History& history) {
    const auto still = trainer.evaluate(data);  // the weights are where they were
    CHECK(history.back().training.accuracy == Approx(still.accuracy).margin(1.0 / 12));
    CHECK(history.back().training.accuracy <= 1);
  });
  fit(24, 20, [&](auto&, const sk::History& history) {
    CHECK(history.epochs().front().made_no_step());
    CHECK(std::isnan(history.epochs().front().training.loss));
    CHECK(std::isfinite(history.back().training.loss));
    CHECK(std::isfinite(history.best().training.loss));
  });
}

TEST_CASE("a fit that names no scaling of the loss has that of the train step, and skips its steps as such", "[train]") {
  using Half = sk::Model<nn::Linear<3>, sk::Shape<1>, sk::Cpu, sk::precision::bf16>;
  Half model{sk::Seed{1}};
  {
    const auto lease = model.modify();
    std::fill_n(lease.data(), model.parameters().size, 0.0f);
    lease[Half::parameter("bias").offset] = 0.1f;
  }
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1e-9f}};
  trainer.train_step().set_loss_scaling({.initial = 3e38, .interval = 0, .greatest = 3e38});
  const auto data = sk::data::from_tensors(std::vector<float>(24, 1000), sk::Extents{1, {1}}, std::vector<std::int32_t>(24, 0));
  const sk::History history = trainer.fit(data, {.batch = 1, .progress = false, .threads = 1});
  REQUIRE(trainer.train_step().loss_scaler().skipped() > 5);
  REQUIRE(trainer.train_step().steps() > 5);
  CHECK(history.back().training.accuracy == 1);  // of those that were made, all
}

TEST_CASE("what cannot be scaled is refused", "[train]") {
  const cases::Samples samples;
  const auto data = sk::data::from_tensors(samples.x, cases::In::extents, samples.y);
  Model<float> wide;
  sk::Trainer plain{wide, nn::Mse{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(
      plain.fit(data, {.batch = 4, .progress = false, .step = {.loss_scaling = sk::optim::LossScaling::dynamic()}}),
      "fit: .step.loss_scaling is for models whose activations are stored in 16 bits, as those of precision::fp16: leave it out");
  Model<sk::precision::fp16> half;
  sk::Trainer trainer{half, nn::Mse{}, sk::optim::Sgd{}};
  CHECK_THROWS_AS(
      trainer.fit(data, {.batch = 4, .progress = false, .step = {.loss_scaling = sk::optim::LossScaling{.growth = 0}}}),
      sk::ArgumentError);
  CHECK_NOTHROW(trainer.fit(data, {.batch = 4, .progress = false, .step = {.loss_scaling = sk::optim::LossScaling::fixed(128)}}));
  CHECK(trainer.train_step().loss_scaler().scale() == 128);
}
