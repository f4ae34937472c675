// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of nn and optim. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <skein/nn/loss/weighted_losses.hpp>
#include <skein/skein.hpp>

#include "../support/larger.hpp"
#include "../support/own_losses.hpp"

namespace sk = skein;

// [quote network]
struct GuideBlock : sk::nn::Sequential<sk::nn::Conv2d<8, sk::Kernel<3>, sk::Padding<1>>, sk::nn::Relu> {};
// clang-format off
struct GuideNet : sk::nn::Sequential<
    sk::nn::Conv2d<8, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>, sk::nn::Relu, sk::nn::MaxPool2d<2>,      // (4, 4, 8)
    sk::nn::Residual<GuideBlock>, sk::nn::Repeat<3, GuideBlock>,
    sk::nn::Flatten, sk::nn::Dropout<sk::Rate<1, 4>>, sk::nn::Linear<10>> {};
// clang-format on

using GuideModel = sk::Model<GuideNet, sk::Shape<8, 8, 1>>;
static_assert(GuideModel::parameter_count == 72 + 4 * 584 + 1290);
static_assert(GuideModel::output_extents == sk::Extents{1, {10}});
// [end]

// [quote models]
using Small = sk::Model<sk::models::CifarResNet<32>, sk::Shape<32, 32, 3>>;  // option A of the paper
static_assert(Small::parameter_count == 464'154);
using Projected = sk::Model<sk::models::CifarResNet<32, sk::models::Shortcut::projection>, sk::Shape<32, 32, 3>>;
static_assert(Projected::parameter_count == 464'154 + 2'752);
using Lab = sk::Model<sk::models::ResNetV2<50, 10>, sk::Shape<128, 128, 3>>;  // ten classes, images of any size
static_assert(Lab::parameter_count == 23'539'850);
// [end]

// [quote own_optimizer]
struct SignSgd {
  float lr = 1e-3f;
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const sk::optim::UpdateCall<Scalar, Device>& call) const {
    for (long i = call.begin; i < call.end; ++i) {
      Scalar g = 0;
      for (int w = 0; w < call.gradient_count; ++w) g += call.gradients[w][i];  // one array a worker
      g *= call.gradient_scale;                                                 // the divisor, the loss scale and the clipping
      const Scalar sign = g > 0 ? Scalar(1) : g < 0 ? Scalar(-1) : g;           // 0, or a NaN, which has to be seen
      call.parameters[i] -= static_cast<Scalar>(call.lr) * sign;
    }
  }
};
// [end]
static_assert(sk::optim::Optimizer<SignSgd>);

TEST_CASE("the sign of a gradient that is no number is none: the weight shows it", "[guide]") {
  float weights[] = {1, 1, 1};
  const float gradient[] = {0.5f, 0, std::numeric_limits<float>::quiet_NaN()};
  const float* gradients[] = {gradient};
  sk::optim::UpdateCall<float> call;
  call.parameters = weights, call.gradients = gradients, call.end = 3, call.lr = 0.25f;
  SignSgd{}.apply(call);
  CHECK(weights[0] == 0.75f);
  CHECK(weights[1] == 1);
  CHECK(std::isnan(weights[2]));
}

TEST_CASE("an own apply takes the factor of the gradients: a step without weight moves nothing", "[guide]") {
  float weights[] = {1, 1};
  const float gradient[] = {0.5f, -3};
  const float* gradients[] = {gradient};
  sk::optim::UpdateCall<float> call;
  call.parameters = weights, call.gradients = gradients, call.end = 2, call.lr = 0.25f, call.gradient_scale = 0;
  SignSgd{}.apply(call);
  CHECK(weights[0] == 1);
  CHECK(weights[1] == 1);
}

namespace {
/// Plain SGD by a loop of its own.
struct LoopedSgd {
  float lr = 1e-3f;
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const sk::optim::UpdateCall<Scalar, Device>& call) const {
    for (long i = call.begin; i < call.end; ++i) {
      Scalar g = 0;
      for (int w = 0; w < call.gradient_count; ++w) g += call.gradients[w][i];
      call.parameters[i] -= static_cast<Scalar>(call.lr) * call.gradient_scale * g;
    }
  }
};
/// The weights after three steps with class weights, which are clipped.
template <class Optimizer> std::vector<float> clipped(const Optimizer& optimizer) {
  const std::vector<float> weights{1, 2, 0.5f, 3, 1, 1, 1, 1, 1, 4};
  std::vector<float> pixels(64 * 8);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 7) / 7;
  const auto data =
      sk::data::from_tensors(std::move(pixels), sk::Extents{3, {8, 8, 1}}, std::vector<std::int32_t>{1, 2, 3, 9, 5, 6, 7, 3});
  GuideModel model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{.class_weights = weights}, optimizer};
  trainer.fit(data, {.epochs = 3, .batch = 8, .clip_norm = 0.5, .progress = false, .threads = 2});
  return {model.parameters().data, model.parameters().data + model.parameters().size};
}
}  // namespace

TEST_CASE("an own apply that multiplies by gradient_scale is clipped and weighted as the library's SGD is", "[guide]") {
  const std::vector<float> own = clipped(LoopedSgd{.lr = 0.1f}), library = clipped(sk::optim::Sgd{.lr = 0.1f});
  REQUIRE(own.size() == library.size());
  double far = 0;
  for (std::size_t i = 0; i < own.size(); ++i) far = support::larger(far, std::abs(own[i] - library[i]));
  CHECK(far < 1e-6);
}

TEST_CASE("a pass by hand, and an optimizer on it", "[guide]") {
  const auto digits = sk::data::from_tensors(std::vector<float>(64 * 5, 0.5f), sk::Extents{3, {8, 8, 1}},
                                             std::vector<std::int32_t>{1, 2, 3, 4, 5});
  sk::data::Loader<> loader{digits, {.batch = 5}};
  // [quote pass]
  GuideModel model{sk::Seed{1}};
  sk::Executor executor{model, sk::nn::CrossEntropy{.label_smoothing = 0.1}, {.capacity = 32, .threads = 2}};
  for (const sk::data::Batch<>& batch : loader.epoch(0)) {
    const sk::nn::LossSums sums = executor.forward_backward(batch);  // the gradients of the mean are in model.gradients()
    CHECK(sums.mean() > 0);
  }
  // [end]
  double norm = 0;
  for (float g : model.gradients()) norm += static_cast<double>(g) * static_cast<double>(g);
  CHECK(norm > 0);
  const std::string table = sk::summary(model);
  CHECK_THAT(table, Catch::Contains("3,698 parameters"));
}

TEST_CASE("a model with 16-bit activations", "[guide]") {
  const auto digits = sk::data::from_tensors(std::vector<float>(64 * 5, 0.5f), sk::Extents{3, {8, 8, 1}},
                                             std::vector<std::int32_t>{1, 2, 3, 4, 5});
  // [quote precision]
  sk::Model<GuideModel::network, GuideModel::input, sk::Cpu, sk::precision::bf16> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(digits, {.epochs = 2, .batch = 5, .progress = false});
  const float weight = model.parameters()[0];  // parameters, gradients, state and files are float
  // [end]
  CHECK(std::isfinite(weight));
  CHECK(trainer.train_step().steps() == 2);
  STATIC_REQUIRE(std::same_as<decltype(model)::Activation, sk::bf16>);
  STATIC_REQUIRE(2 * sk::saved_bytes_per_sample<decltype(model)> <= sk::saved_bytes_per_sample<GuideModel> + 1024);
}

TEST_CASE("a loss out of its formula", "[guide]") {
  using own_losses::Focal;
  const auto digits = sk::data::from_tensors(std::vector<float>(64 * 5, 0.5f), sk::Extents{3, {8, 8, 1}},
                                             std::vector<std::int32_t>{1, 1, 1, 4, 5});
  GuideModel model{sk::Seed{1}};
  const std::vector<float> weights(10, 2.0f);
  // [quote own_loss]
  const sk::nn::OwnLoss focal{Focal{.gamma = 2}, {.class_weights = weights}};
  sk::Trainer trainer{model, focal, sk::optim::Adam{.lr = 0.01f}};
  // [end]
  const std::vector<double> losses = trainer.fit(digits, {.epochs = 5, .batch = 5, .progress = false}).losses();
  CHECK(losses.back() < losses.front());
}

TEST_CASE("several losses of one output", "[guide]") {
  using own_losses::Focal;
  const auto digits = sk::data::from_tensors(std::vector<float>(64 * 5, 0.5f), sk::Extents{3, {8, 8, 1}},
                                             std::vector<std::int32_t>{1, 1, 1, 4, 5});
  GuideModel model{sk::Seed{1}};
  // [quote weighted_losses]
  const auto loss =
      sk::nn::weighted_losses<GuideModel>(sk::nn::on(sk::nn::CrossEntropy{}), sk::nn::on(sk::nn::OwnLoss{Focal{}}, 0.1));
  sk::Trainer trainer{model, loss, sk::optim::Adam{.lr = 0.01f}};
  // [end]
  const std::vector<double> losses = trainer.fit(digits, {.epochs = 5, .batch = 5, .progress = false}).losses();
  CHECK(losses.back() < losses.front());
}

TEST_CASE("optimizers, groups, schedules", "[guide]") {
  // [quote groups]
  const sk::optim::AdamW optimizer{
      .lr = 1e-3f,
      .weight_decay = 0.05f,
      .groups = {sk::optim::no_decay_on_biases_and_norms(), sk::optim::frozen("0.*"), sk::optim::learning_rate("9.*", 10)}};
  // [end]
  GuideModel model{sk::Seed{1}};
  const auto before = sk::Tensor<float, 1>(std::span<const float>(model.parameters().data, 8), sk::dims(8));
  const auto data = sk::data::from_tensors(std::vector<float>(64 * 8, 0.5f), sk::Extents{3, {8, 8, 1}},
                                           std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  // [quote schedule]
  const auto rising = sk::optim::warmup(sk::optim::epochs(1));        // a factor of lr for each step
  const sk::optim::Schedule schedule = rising * sk::optim::cosine();  // over the whole fit
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optimizer};
  trainer.fit(data, {.epochs = 2, .batch = 4, .schedule = schedule, .clip_norm = 1.0, .progress = false});
  // [end]
  const auto of_a_fit = schedule.bound({.steps = 10'000, .steps_per_epoch = 100});
  CHECK(of_a_fit(0) == Approx(0.01));
  CHECK(of_a_fit(99) == Approx(1).epsilon(0.01));
  CHECK(std::vector<float>(before.begin(), before.end()) ==
        std::vector<float>(model.parameters().data, model.parameters().data + 8));
  sk::Trainer own{model, sk::nn::CrossEntropy{}, SignSgd{.lr = 0.01f}};
  const sk::History history = own.fit(data, {.epochs = 3, .batch = 8, .progress = false});
  CHECK(history.losses().back() < history.losses().front());
}
