// SPDX-License-Identifier: Apache-2.0
// 16-bit samples on a GPU: trainings beside the Cpu's, launched and replayed; layers with kernels of their own and layers that
// run on converted blocks; overflows; TF32 as a mode.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/train/trainer.hpp>

#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace precision_test {
/// A user's layer, which knows nothing of 16 bits: y = x / 2.
struct Half {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  struct Function {
    template <class T> constexpr T operator()(const T& x) const { return x * T(0.5f); }
  };
  template <class In, class Frame> static void forward(Frame& f) {
    static_assert(std::same_as<typename Frame::Activation, float>);
    sk::ops::map<typename Frame::Device>(Function{}, f.batch * sk::sample_pitch(In::extents), f.x, f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) sk::ops::map<typename Frame::Device>(Function{}, f.batch * sk::sample_pitch(In::extents), f.dy, f.dx);
  }
};
}  // namespace precision_test

namespace {
using Mlp = nn::Sequential<nn::Linear<24>, nn::Tanh, nn::Linear<17>, nn::Sigmoid, nn::Linear<5>>;
using Mixed =
    nn::Sequential<nn::Linear<24>, nn::Gelu, precision_test::Half, nn::LayerNorm<>, nn::Residual<nn::Linear<24>>, nn::Linear<5>>;
using Images =
    nn::Sequential<nn::Conv2d<8, sk::Kernel<3>>, nn::BatchNorm<>, nn::Tanh, nn::AvgPool2d<2>, nn::Flatten, nn::Linear<5>>;

/// The Cpu stores in the same type and multiplies in float; the GPU rounds the weights too: twenty steps stay as near as that.
template <class Net, class Input, class P, class Loss, class Optimizer>
void agrees(const Loss& loss, const Optimizer& optimizer, twins::Plan plan = {}, double tolerance = 0.02) {
  const auto here = twins::run<Net, Input, P, sk::Cpu>(loss, optimizer, plan);
  plan.graph = false;
  const auto launched = twins::run<Net, Input, P, sk::Cuda>(loss, optimizer, plan, sk::Cuda{});
  plan.graph = true;
  const auto replayed = twins::run<Net, Input, P, sk::Cuda>(loss, optimizer, plan, sk::Cuda{});
  CHECK(twins::apart(here.losses, launched.losses) < tolerance);
  CHECK(twins::apart(here.parameters, launched.parameters) < tolerance);
  INFO(replayed.note);
  CHECK(replayed.replays > plan.steps / 3);
  CHECK(replayed.losses == launched.losses);
  CHECK(replayed.parameters == launched.parameters);
  CHECK(replayed.state == launched.state);
}
}  // namespace

TEST_CASE("linear and elementwise layers compute in 16 bits on a GPU", "[nn][cuda]") {
  STATIC_REQUIRE(nn::computes_in<nn::Linear<3>, sk::Cuda, sk::bf16>);
  STATIC_REQUIRE(!nn::computes_in<nn::Linear<3>, sk::Cpu, sk::bf16>);
  agrees<Mlp, sk::Shape<13>, sk::precision::bf16>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
  agrees<Mlp, sk::Shape<13>, sk::precision::bf16>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9},
                                                  {.steps = 60, .accumulate = 3});
  agrees<Mlp, sk::Shape<13>, sk::precision::fp16>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}

TEST_CASE("a layer that knows nothing of 16 bits runs between those that do", "[nn][cuda]") {
  agrees<Mixed, sk::Shape<13>, sk::precision::bf16>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.05f}, {}, 0.04);
}

TEST_CASE("convolutions, normalisation and pooling compute in 16 bits on a GPU", "[nn][cuda]") {
  agrees<Images, sk::Shape<8, 8, 3>, sk::precision::bf16>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.05f}, {}, 0.06);
}

TEST_CASE("a GPU's step that overflows is skipped, and the scale falls", "[train][cuda]") {
  using Model = sk::Model<Mlp, sk::Shape<13>, sk::Cuda, sk::precision::fp16>;
  for (bool graph : {false, true}) {
    Model model{sk::Seed{3}};
    twins::Data<Model, nn::Mse> good(12), bad(12);
    bad.y[0] = 1e8f;
    sk::train::TrainStep train_step{model, nn::Mse{}, optim::Adam{.lr = 0.01f}, sk::parallel::SingleProcess{}};
    train_step.reserve({.capacity = 6, .threads = 1});
    train_step.executor().prepare(6);
    train_step.set_loss_scaling({.initial = 1024, .interval = 5});
    sk::optim::StepOptions o;
    o.graph = graph;
    for (int i = 0; i < 4; ++i) train_step.step(good.batch(0, 6), o);
    CHECK(train_step.steps() == 4);
    CHECK(train_step.loss_scaler().scale() == 1024);
    const auto before = twins::values(model.parameters(), model.where()),
               moments = twins::values(train_step.optimizer().array(0), model.where());
    train_step.step(bad.batch(0, 6), o);
    CHECK(twins::values(model.parameters(), model.where()) == before);
    CHECK(twins::values(train_step.optimizer().array(0), model.where()) == moments);
    CHECK(train_step.steps() == 4);
    CHECK(train_step.loss_scaler().scale() == 512);
    CHECK(train_step.loss_scaler().skipped() == 1);
    CHECK(train_step.totals().weight == 4 * 6 * 5);  // without the step that was skipped
    for (int i = 0; i < 5; ++i) train_step.step(good.batch(0, 6), o);
    CHECK(train_step.steps() == 9);
    CHECK(train_step.loss_scaler().scale() == 1024);
    CHECK(twins::values(model.parameters(), model.where()) != before);
    if (graph) CHECK(train_step.device().replays() > 3);
  }
}
TEST_CASE("a fit on a GPU whose steps are all skipped ends with a sentence, and skipped steps are in no mean", "[train][cuda]") {
  sk::Model<Mlp, sk::Shape<13>, sk::Cuda, sk::precision::fp16> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, optim::Adam{.lr = 0.01f}};
  std::vector<float> x, y;
  for (int i = 0; i < 12; ++i) {
    for (int c = 0; c < 13; ++c) x.push_back(0.1f * static_cast<float>((i + c) % 7));
    for (int c = 0; c < 5; ++c) y.push_back(0.2f * static_cast<float>((i * c) % 3));
  }
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {13}}, y);
  sk::FitOptions how{.epochs = 2, .batch = 4, .progress = false};
  how.step.loss_scaling = optim::LossScaling::fixed(1e30);
  CHECK_THROWS_WITH(trainer.fit(data, how), Catch::StartsWith("fit: all steps of an epoch were skipped"));
  how.epochs = 20;
  how.step.loss_scaling = optim::LossScaling{.initial = 1e12, .interval = 0, .greatest = 1e12};  // falls from there
  const sk::History history = trainer.fit(data, how);
  CHECK(std::isfinite(history.back().training.loss));
  CHECK(trainer.train_step().steps() > 0);
}
TEST_CASE("running statistics of a GPU are those before a step whose loss overflows, launched and replayed", "[train][cuda]") {
  using Model =
      sk::Model<nn::Sequential<nn::Linear<8>, nn::BatchNorm<>, nn::Linear<5>>, sk::Shape<13>, sk::Cuda, sk::precision::fp16>;
  for (bool graph : {false, true}) {
    Model model{sk::Seed{3}};
    twins::Data<Model, nn::CrossEntropy> good(6), bad(6);
    for (float& x : bad.x) x *= 1e6f;  // infinite in 16 bits
    sk::train::TrainStep train_step{model, nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
    train_step.reserve({.capacity = 6, .threads = 1});
    train_step.executor().prepare(6);
    sk::optim::StepOptions o;
    o.graph = graph;
    for (int i = 0; i < 4; ++i) train_step.step(good.batch(0, 6), o);
    const auto before = twins::values(model.buffers(), model.where());
    const sk::nn::LossSums sums = train_step.step(bad.batch(0, 6), o);
    CHECK(!std::isfinite(sums.loss));
    CHECK(train_step.steps() == 4);
    CHECK(twins::values(model.buffers(), model.where()) == before);
    train_step.step(good.batch(0, 6), o);
    CHECK(twins::values(model.buffers(), model.where()) != before);
    CHECK(train_step.steps() == 5);
    if (graph) CHECK(train_step.device().replays() > 1);
  }
}

namespace {
/// Wide enough that cuBLASLt takes tensor cores where it may.
using Wide = nn::Sequential<nn::Linear<128>, nn::Relu, nn::Linear<64>, nn::Tanh, nn::Linear<5>>;
}  // namespace
TEST_CASE("TF32 is a mode of the products alone, and nearer to float than bf16", "[nn][cuda]") {
  using Model = sk::Model<Wide, sk::Shape<64>, sk::Cuda, sk::precision::tf32>;
  STATIC_REQUIRE(std::same_as<Model::Activation, float>);
  const auto wide = twins::run<Wide, sk::Shape<64>, float, sk::Cuda>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f}, twins::Plan{});
  const auto bf16 =
      twins::run<Wide, sk::Shape<64>, sk::precision::bf16, sk::Cuda>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f}, twins::Plan{});
  const auto tf32 =
      twins::run<Wide, sk::Shape<64>, sk::precision::tf32, sk::Cuda>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f}, twins::Plan{});
  CHECK(twins::apart(wide.losses, tf32.losses) < 2e-3);
  CHECK(wide.losses != tf32.losses);  // 10 bits of mantissa
  CHECK(twins::apart(wide.losses, bf16.losses) < 0.02);
  CHECK(twins::apart(wide.losses, bf16.losses) > 2 * twins::apart(wide.losses, tf32.losses));
}
