// SPDX-License-Identifier: Apache-2.0
// Pipelines whose stages are on GPUs, a rank of this process each, and on one GPU: the curve, the outputs and the files of the
// same pipeline on the host.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/cuda.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>

#include "support/rank_check.hpp"
#include "support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using S = sk::parallel::PipelineSchedule;

#if defined(SKEIN_CUDA_ON_HOST)
extern "C" long skein_pretend_allocations();
#endif

namespace {
using First = nn::Sequential<nn::Linear<24>, nn::Relu, nn::Dropout<sk::Rate<1, 5>>>;
using Second = nn::Sequential<nn::Linear<9>, nn::Tanh, nn::Linear<3>>;
using Pipeline = sk::parallel::Pipeline<First, Second>;

/// 103 samples: no batch size divides it.
struct Points {
  std::vector<float> x = std::vector<float>(103 * 12);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(103);
  Points() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(sk::random_uniform(7, 0, i)) - 0.5f;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = x[12 * i] + x[12 * i + 1] > 0 ? 1 : x[12 * i + 2] > 0 ? 2 : 0;
  }
  auto set() const { return sk::data::from_tensors(x, sk::Extents{1, {12}}, labels); }
};

struct Result {
  std::vector<double> losses, accuracies;
  std::vector<float> outputs;
  double scale = 0;
};

/// Trains, writes a file, reads it into another pipeline of this kind, whose outputs are those of the result.
template <class Device, class Precision, class Comm>
Result train(Comm& world, const sk::parallel::PipelineOptions& o, sk::FitOptions options) {
  const auto data = Points{}.set();
  const Pipeline pipeline{world, o};
  auto model = pipeline.template model<sk::Shape<12>, Device, Precision>(sk::Seed{9});
  const sk::optim::Sgd sgd{.lr = 0.05f, .momentum = 0.5f};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sgd, pipeline};
  options.epochs = 3;
  options.batch = 20;
  options.record_steps = true;
  options.progress = false;
  options.validate = data;
  options.threads = 1;
  const sk::History history = trainer.fit(data, options);
  Result r;
  r.losses = history.losses();
  r.losses.push_back(history.back().validation.loss);
  for (const auto& e : history.epochs()) {
    r.losses.push_back(e.training.loss);
    r.accuracies.push_back(e.training.accuracy);
  }
  if constexpr (requires { trainer.train_step().loss_scaler(); }) r.scale = trainer.train_step().loss_scaler().scale();
  const support::TemporaryFolder folder;
  const std::string path = world.broadcast(folder / "pipeline", 0);
  trainer.save(path);
  auto other = pipeline.template model<sk::Shape<12>, Device, Precision>(sk::Seed{10});
  sk::Trainer reader{other, nn::CrossEntropy{}, sgd, pipeline};
  reader.load(path);
  const auto outputs = reader.predict(data);
  r.outputs.resize(103 * 3);
  sk::Copy<sk::Cpu, Device>::run(r.outputs.data(), outputs.data(), r.outputs.size() * sizeof(float), sk::Cpu{}, other.where());
  return r;
}
void require_same(const Result& a, const Result& b, double tolerance) {
  RANK_CHECK(a.losses.size() == b.losses.size() && a.outputs.size() == b.outputs.size() && a.scale == b.scale);
  for (std::size_t i = 0; i < a.losses.size(); ++i) RANK_CHECK(std::abs(a.losses[i] - b.losses[i]) < tolerance);
  for (std::size_t i = 0; i < a.accuracies.size(); ++i) RANK_CHECK(std::abs(a.accuracies[i] - b.accuracies[i]) < 1.5 / 103);
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    RANK_CHECK(std::abs(static_cast<double>(a.outputs[i]) - static_cast<double>(b.outputs[i])) < 10 * tolerance);
}
/// As many GPUs as there are, at most one a rank.
void use_a_device(int rank) {
  int n = 0;
  sk::cuda::check(cudaGetDeviceCount(&n), "cudaGetDeviceCount");
  sk::Memory<sk::Cuda>::make_current(sk::Cuda{rank % n});
}
template <class Precision>
void as_on_the_host(const sk::parallel::PipelineOptions& o, const sk::FitOptions& options, double tolerance) {
  sk::SelfComm self;
  const Result expected = train<sk::Cpu, Precision>(self, o, options);
  CHECK_NOTHROW(require_same(train<sk::Cuda, Precision>(self, o, options), expected, tolerance));
  CHECK_NOTHROW(sk::spawn(2,
                          [&](sk::ThreadComm& world) {
                            use_a_device(world.rank());
                            require_same(train<sk::Cuda, Precision>(world, o, options), expected, tolerance);
                          },
                          {.deadline = 120}));
}
}  // namespace

TEST_CASE("stages on GPUs train as on the host", "[parallel][cuda]") {
  as_on_the_host<float>({.schedule = S::one_f_one_b, .micro_batches = 4}, {.clip_norm = 0.3}, 2e-5);
  as_on_the_host<float>({.schedule = S::zero_bubble, .micro_batches = 3}, {}, 2e-5);
  as_on_the_host<float>({.schedule = S::pipedream, .micro_batches = 5}, {}, 2e-5);
}
TEST_CASE("stages on GPUs in 16 bits skip steps together", "[parallel][cuda]") {
  as_on_the_host<sk::precision::fp16>(
      {.micro_batches = 4}, {.step = {.loss_scaling = sk::optim::LossScaling{.initial = 2097152, .interval = 2}}}, 2e-2);
}
TEST_CASE("pipelines of GPUs beside each other", "[parallel][cuda]") {
  sk::SelfComm self;
  const Result expected = train<sk::Cpu, float>(self, {.micro_batches = 4}, {});
  CHECK_NOTHROW(sk::spawn(4,
                          [&](sk::ThreadComm& world) {
                            use_a_device(world.rank());
                            require_same(train<sk::Cuda, float>(world, {.micro_batches = 2, .replicas = 2}, {}), expected, 2e-5);
                          },
                          {.deadline = 120}));
}
TEST_CASE("no step of stages on a GPU makes memory of it after the first", "[parallel][cuda]") {
#if defined(SKEIN_CUDA_ON_HOST)
  const Points points;
  sk::SelfComm self;
  const Pipeline pipeline{self, {.micro_batches = 4}};
  auto model = pipeline.model<sk::Shape<12>, sk::Cuda>(sk::Seed{9});
  sk::parallel::PipelineTrainStep train_step(model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f}, pipeline);
  train_step.reserve({.capacity = 20});
  sk::data::Batch<float> batch;
  batch.x = points.x.data();
  batch.pitch = 12;
  batch.labels = points.labels.data();
  batch.count = batch.global_count = 20;
  train_step.step(batch, {.clip_norm = 0.1});
  const long allocations = skein_pretend_allocations();
  for (int i = 0; i < 3; ++i) train_step.step(batch, {.clip_norm = 0.1});
  CHECK(skein_pretend_allocations() == allocations);
#endif
}
