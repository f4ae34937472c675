// SPDX-License-Identifier: Apache-2.0
// A training step on a GPU is the Cpu's step: launched kernel by kernel or replayed as one graph, with every option of a step.
#include <catch2/catch.hpp>

#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

#if defined(SKEIN_CUDA_ON_HOST)
extern "C" long skein_pretend_allocations();
extern "C" long skein_pretend_waits();
extern "C" void skein_pretend_fail_allocation(long n);
#endif

namespace {
using Mlp = nn::Sequential<nn::Linear<24>, nn::Relu, nn::Linear<17>, nn::Tanh, nn::Linear<5>>;
using In = sk::Shape<13>;
using WithDropout = nn::Sequential<nn::Linear<32>, nn::Relu, nn::Dropout<sk::Rate<1, 4>>, nn::LayerNorm<>, nn::Linear<5>>;
}  // namespace

namespace stepper_test {
/// A layer of the user's that waits for its device: no step with it can be captured.
struct Waits {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class I, class Frame> static void forward(Frame& f) {
    if constexpr (!sk::on_host<typename Frame::Device>) sk::cuda::synchronize(sk::cuda::current_device());
    sk::ops::copy<typename Frame::Device>(f.y, f.x, f.batch * sk::sample_pitch(I::extents));
  }
  template <class I, class Frame> static void backward(Frame& f) {
    if (f.dx) sk::ops::copy<typename Frame::Device>(f.dx, f.dy, f.batch * sk::sample_pitch(I::extents));
  }
};
}  // namespace stepper_test

TEST_CASE("steps on a GPU are those of the Cpu, launched and replayed", "[train][cuda]") {
  twins::agree<Mlp, In>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
  twins::agree<Mlp, In, double>(nn::Mse{}, optim::Sgd{.lr = 0.1f});
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Adam{.lr = 0.01f}, {.steps = 25});
}
TEST_CASE("an uneven batch, an accumulation and a clipped norm are steps of their own kind on a GPU", "[train][cuda]") {
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9}, {.steps = 60, .accumulate = 3});
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::AdamW{.lr = 0.01f, .weight_decay = 0.1f}, {.steps = 24, .clip = 0.05});
  twins::agree<Mlp, In, double>(nn::Mse{}, optim::RmsProp{.lr = 0.003f}, {.steps = 24, .batch = 9, .last = 1, .clip = 1e9});
}
TEST_CASE("an evaluation within an accumulation on a GPU has sums of its own, also between replays", "[train][cuda]") {
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9},
                                {.steps = 60, .accumulate = 3, .evaluates = true});
}
TEST_CASE("class weights, ignored labels and smoothing on a GPU", "[train][cuda]") {
  twins::agree<Mlp, In, double>(
      nn::CrossEntropy{.label_smoothing = 0.1, .class_weights = {1, 2, 0.5f, 3, 0.25f}, .ignore_label = 3},
      optim::Sgd{.lr = 0.1f});
}
TEST_CASE("dropout draws the same numbers on both devices, in every replay others", "[train][cuda]") {
  twins::agree<WithDropout, In, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}
TEST_CASE("parameter groups on a GPU", "[train][cuda]") {
  optim::Sgd sgd{.lr = 0.1f, .momentum = 0.9, .weight_decay = 0.01f};
  sgd.groups = {{optim::no_decay_on_biases_and_norms(), optim::learning_rate("2.*", 0.5f), optim::frozen("0.weight")}};
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, sgd);
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, sgd, {.clip = 0.1});
}
TEST_CASE("a step runs on the model's GPU, whichever is current", "[train][cuda]") {
  if (sk::cuda::device_count() < 2) {
    WARN("one GPU: nothing to choose");
    return;
  }
  twins::agree<Mlp, In, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.1f}, {.steps = 20, .ordinal = 1});
}

TEST_CASE("a step that cannot be captured goes on kernel by kernel, and says why", "[train][cuda]") {
  using Net = nn::Sequential<nn::Linear<8>, stepper_test::Waits, nn::Linear<5>>;
  const optim::Adam adam{.lr = 0.01f};  // which counts its steps: the one that was refused is one
  const auto here = twins::run<Net, In, double, sk::Cpu>(nn::Mse{}, adam, {});
  const auto there = twins::run<Net, In, double, sk::Cuda>(nn::Mse{}, adam, {});
  CHECK(twins::apart(here.losses, there.losses) < 1e-12);
  CHECK(twins::apart(here.parameters, there.parameters) < 1e-12);
  CHECK(there.replays == 0);
  CHECK(there.note.find("steps are launched kernel by kernel, since they cannot be captured: ") == 0);
}

TEST_CASE("the sums of a step wait until somebody asks, and are gone with the next step", "[train][cuda]") {
  using Model = sk::Model<Mlp, In, sk::Cuda>;
  Model model{sk::Seed{3}};
  const twins::Data<Model, nn::Mse> data(12);
  sk::train::TrainStep train_step{model, nn::Mse{}, optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = 6});
  const auto first = train_step.step(data.batch(0, 6));
  CHECK(first.mean() > 0);
  const auto second = train_step.step(data.batch(6, 12));
  CHECK(second.mean() > 0);
  CHECK_THROWS_WITH(first.mean(), Catch::Contains("asked for after the next one"));
}

TEST_CASE("steps neither make memory nor wait once all kinds of them were captured", "[train][cuda]") {
#if defined(SKEIN_CUDA_ON_HOST)
  using Model = sk::Model<WithDropout, In, sk::Cuda>;
  Model model{sk::Seed{3}};
  const twins::Data<Model, nn::CrossEntropy> data(30);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{.class_weights = {1, 2, 3, 4, 5}}, optim::Adam{.lr = 0.01f},
                                  sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = 6});
  train_step.executor().prepare(6);
  train_step.executor().prepare(4);
  auto epochs = [&](int n) {
    for (int e = 0; e < n; ++e)
      for (long s = 0; s < 5; ++s)
        (void)train_step.step(data.batch(6 * s, 6 * s + (s == 4 ? 4 : 6)),
                              {.clip_norm = 1, .key = static_cast<std::uint64_t>(s)});
  };
  epochs(4);
  const long allocations = skein_pretend_allocations(), waits = skein_pretend_waits();
  epochs(5);
  CHECK(skein_pretend_allocations() == allocations);
  if (!std::getenv("SKEIN_PRETEND_STREAMS")) CHECK(skein_pretend_waits() == waits);  // else the host may be a ring of slots ahead
  CHECK(train_step.device().graphs() == 4);                                          // two slots, two sizes
  CHECK(train_step.device().replays() >= 25);
#endif
}
TEST_CASE("the first step makes no memory that prepare() could have made", "[train][cuda]") {
#if defined(SKEIN_CUDA_ON_HOST)
  using Model = sk::Model<WithDropout, In, sk::Cuda>;
  Model model{sk::Seed{3}};
  const twins::Data<Model, nn::CrossEntropy> data(6);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, optim::Adam{.lr = 0.01f}, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = 6});
  train_step.executor().prepare(6);
  auto batch = data.batch(0, 6);
  batch.held = 2;
  sk::cuda::Pinned<float> x(data.x.size());
  std::copy(data.x.begin(), data.x.end(), x.data());
  batch.x = x.data();
  const long allocations = skein_pretend_allocations(), waits = skein_pretend_waits();
  (void)train_step.step(batch, {.clip_norm = 1});
  CHECK(skein_pretend_allocations() == allocations);
  CHECK(skein_pretend_waits() == waits);
#endif
}

#if defined(SKEIN_CUDA_ON_HOST)
namespace {
/// The losses of a training that asks for memory for large batches, finds none where allocation `failing` is (0: finds it), and
/// goes on with smaller ones; a step that finds none is made again.
std::vector<double> losses_without_memory(long failing, bool& failed) {
  using Model = sk::Model<WithDropout, In, sk::Cuda>;
  Model model{sk::Seed{3}};
  const twins::Data<Model, nn::CrossEntropy> data(30);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, optim::Adam{.lr = 0.01f}, sk::parallel::SingleProcess{}};
  std::vector<double> losses;
  const auto step = [&](long count) {
    const auto key = static_cast<std::uint64_t>(losses.size() + 1);
    losses.push_back(sk::nn::LossSums(train_step.step(data.batch(0, count), {.clip_norm = 1, .key = key})).mean());
  };
  const auto tried = [&](const auto& call) {
    try {
      return call(), true;
    } catch (const sk::DeviceError&) { return !(failed = true); }
  };
  train_step.reserve({.capacity = 2});
  step(2);
  skein_pretend_fail_allocation(failing);
  (void)tried([&] { train_step.reserve({.capacity = 30}); });
  if (!tried([&] { train_step.reserve({.capacity = 6}); })) train_step.reserve({.capacity = 6});
  for (int i = 0; i < 8; ++i)
    if (!tried([&] { step(6); })) step(6);
  skein_pretend_fail_allocation(0);
  return losses;
}
}  // namespace

TEST_CASE("wherever the memory of a GPU ends, a training goes on with smaller batches", "[train][cuda]") {
  bool failed = false;
  const std::vector<double> wanted = losses_without_memory(0, failed);
  CHECK(!failed);
  long allocation = 0;
  do {
    failed = false;
    CAPTURE(++allocation);
    CHECK(losses_without_memory(allocation, failed) == wanted);
  } while (failed);
  CHECK(allocation > 20);
}
#endif

namespace {
using Narrow = sk::Model<nn::Sequential<nn::Linear<7>, nn::Tanh, nn::Linear<3>>, sk::Shape<5>, sk::Cuda>;
/// 6 samples and targets in rows that are wider than the model's own, each array ending with the last row's values.
struct WideRows {
  static constexpr long pitch = sk::sample_pitch(Narrow::input::extents), target_pitch = sk::row_pitch(3), wide = pitch + 3,
                        wide_target = target_pitch + 5;
  std::vector<float> x = std::vector<float>(5 * wide + 5), y = std::vector<float>(5 * wide_target + 3), dense_x, dense_y;
  WideRows() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(sk::random_uniform(3, 0, i)) - 0.5f;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(sk::random_uniform(3, 1, i)) - 0.5f;
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t c = 0; c < pitch; ++c) dense_x.push_back(c < 5 ? x[wide * i + c] : 0);
      for (std::size_t c = 0; c < target_pitch; ++c) dense_y.push_back(c < 3 ? y[wide_target * i + c] : 0);
    }
  }
  static sk::BatchView<float> view(const std::vector<float>& x, long pitch, const std::vector<float>& y, long target_pitch) {
    return {.x = x.data(), .pitch = pitch, .targets = y.data(), .target_pitch = target_pitch, .count = 6, .global_count = 6};
  }
};
std::vector<float> weights_of(const Narrow& model) { return twins::values(model.parameters(), model.where()); }
}  // namespace

TEST_CASE("rows of a batch that lie in a wider array, which ends with the last of them, are packed on their way",
          "[train][cuda]") {
  const WideRows rows;
  const auto wide = rows.view(rows.x, rows.wide, rows.y, rows.wide_target),
             dense = rows.view(rows.dense_x, rows.pitch, rows.dense_y, rows.target_pitch);
  const sk::Arena<float, sk::Cuda> x(rows.x.size()), y(rows.y.size());
  sk::Copy<sk::Cuda, sk::Cpu>::run(const_cast<float*>(x.data()), rows.x.data(), rows.x.size() * sizeof(float));
  sk::Copy<sk::Cuda, sk::Cpu>::run(const_cast<float*>(y.data()), rows.y.data(), rows.y.size() * sizeof(float));
  const sk::BatchView<float, sk::Cuda> there{
      .x = x.data(), .pitch = rows.wide, .targets = y.data(), .target_pitch = rows.wide_target, .count = 6, .global_count = 6};
  const auto steps = [](const auto& batch) {
    Narrow model{sk::Seed{3}};
    sk::train::TrainStep step{model, nn::Mse{}, optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
    step.reserve({.capacity = 6, .threads = 1});
    for (int i = 0; i < 5; ++i) (void)step.step(batch);
    return weights_of(model);
  };
  const auto by_hand = [](const auto& batch) {
    Narrow model{sk::Seed{3}};
    sk::Executor executor{model, nn::Mse{}, {.capacity = 6}};
    optim::BoundOptimizer optimizer{optim::Sgd{.lr = 0.1f}, model};
    for (int i = 0; i < 5; ++i) executor.forward_backward(batch), optimizer.step(model);
    return weights_of(model);
  };
  const std::vector<float> expected = steps(dense);
  CHECK(steps(wide) == expected);
  CHECK(steps(there) == expected);
  CHECK(by_hand(wide) == by_hand(dense));
  CHECK(by_hand(there) == by_hand(dense));
}
