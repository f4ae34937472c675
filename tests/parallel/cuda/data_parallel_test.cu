// SPDX-License-Identifier: Apache-2.0
// Data-parallel training on several devices of one process, a rank each: the curve and the weights of the serial run on the Cpu.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <skein/nccl.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/parallel/data/sync_every.hpp>

#include "support/own_exchange.hpp"
#include "support/rank_check.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using Catch::Matchers::Contains;

namespace refused_capture_test {
thread_local bool waits = false;  // of this rank's thread
/// A layer that waits for its device on some ranks: their steps cannot be captured.
struct WaitsOn {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
  template <class I, class Frame> static void forward(Frame& f) {
    if (waits) sk::cuda::synchronize(sk::cuda::current_device());
    sk::ops::copy<typename Frame::Device>(f.y, f.x, f.batch * sk::sample_pitch(I::extents));
  }
  template <class I, class Frame> static void backward(Frame& f) {
    if (f.dx) sk::ops::copy<typename Frame::Device>(f.dx, f.dy, f.batch * sk::sample_pitch(I::extents));
  }
};
}  // namespace refused_capture_test

namespace {
using Net = nn::Sequential<nn::Linear<17>, nn::Relu, nn::Linear<9>, nn::Tanh, nn::Linear<3>>;
/// A network whose samples depend on each other.
using Coupled = nn::Sequential<nn::Linear<17>, nn::BatchNorm<>, nn::Relu, nn::Linear<3>>;

/// 103 samples: no batch size or number of ranks divides it.
struct Points {
  std::vector<float> x = std::vector<float>(103 * 4), y = std::vector<float>(103 * 3);
  Points() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(sk::random_uniform(7, 0, i)) - 0.5f;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(3 * x[i % 100] + x[(i * 7) % 200]);
  }
  sk::BatchView<float> batch(long begin, long count) const {
    return {.x = x.data() + 4 * begin,
            .pitch = 4,
            .targets = y.data() + 3 * begin,
            .target_pitch = 3,
            .count = count,
            .global_count = count};
  }
};

struct Result {
  std::vector<double> losses;
  std::vector<float> parameters;
  double validation = 0;
  long replays = 0;
};

template <class Network = Net, class Device, class Policy, class Optimizer = sk::optim::Sgd>
Result train(Device where, const Policy& policy, sk::FitOptions options, int seed = 3,
             const Optimizer& optimizer = {.lr = 0.1f, .momentum = 0.9f}) {
  Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  sk::Model<Network, sk::Shape<4>, Device> model{sk::Seed{static_cast<std::uint64_t>(seed)}, where};
  sk::Trainer trainer{model, nn::Mse{}, optimizer, policy};
  options.record_steps = true;
  options.progress = false;
  options.validate = data;
  options.seed = sk::Seed{11};
  const sk::History history = trainer.fit(data, options);
  Result r;
  r.losses = history.losses();
  r.validation = history.back().validation.loss;
  r.parameters.resize(std::as_const(model).parameters().size);
  sk::Copy<sk::Cpu, Device>::run(r.parameters.data(), std::as_const(model).parameters().data, r.parameters.size() * sizeof(float),
                                 sk::Cpu{}, where);
  if constexpr (requires { trainer.train_step().device().replays(); }) r.replays = trainer.train_step().device().replays();
  return r;
}

void require_same(const Result& a, const Result& b, double tolerance) {
  RANK_CHECK(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) RANK_CHECK(std::abs(a.losses[i] - b.losses[i]) < tolerance);
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    RANK_CHECK(std::abs(static_cast<double>(a.parameters[i]) - static_cast<double>(b.parameters[i])) < tolerance);
  RANK_CHECK(std::abs(a.validation - b.validation) < tolerance);
}
std::string on_devices(int n, void (*f)(sk::NcclComm&), bool captures = true, double deadline = 120) {
  std::vector<int> some;
  for (int d = 0; d < n; ++d) some.push_back(d);
  sk::NcclOptions options;
  options.deadline = deadline;
  options.capture_in_one_process = captures;
  try {
    sk::spawn(sk::LocalDevices(some), f, options);
  } catch (const sk::Error& e) { return e.what(); }
  return "";
}
// clang++ 14 fails on a constant of this type that is not made by a function.
const sk::FitOptions short_fit = [] { return sk::FitOptions{.epochs = 4, .batch = 20, .threads = 1}; }();

void same_as_serial(sk::NcclComm& world) {
  const Result serial = train(sk::Cpu{}, sk::parallel::SingleProcess{}, short_fit);
  for (const long bucket : {1L, 1L << 20}) {
    const Result r = train(world.where(), sk::parallel::DataParallel{world, {.bucket_bytes = bucket}}, short_fit,
                           3 + world.rank());  // weights are those of rank 0
    require_same(r, serial, 2e-5);
    RANK_CHECK(r.replays > 0);  // the exchange is part of the captured step
    double sum[1] = {0};
    for (const float p : r.parameters) sum[0] += static_cast<double>(p);
    const std::vector<double> all = world.all_gather(sum[0]);
    for (const double s : all) RANK_CHECK(s == sum[0]);
  }
  sk::FitOptions accumulated = short_fit;
  accumulated.batch = 10;
  accumulated.step.accumulate = 2;
  require_same(train(world.where(), sk::parallel::DataParallel{world}, accumulated),
               train(sk::Cpu{}, sk::parallel::SingleProcess{}, accumulated), 2e-5);
}
/// An exchange between ranks of one process is launched, not captured, unless that is asked for.
void launched(sk::NcclComm& world) {
  const Result r = train(world.where(), sk::parallel::DataParallel{world}, short_fit);
  RANK_CHECK((r.replays > 0) == (world.size() == 1));
  require_same(r, train(sk::Cpu{}, sk::parallel::SingleProcess{}, short_fit), 2e-5);
}
/// An average after every step, of the momenta too, is data parallelism; an outer rate of 1 leads to the mean. Losses of steps
/// are each rank's.
void averages(sk::NcclComm& world) {
  const Result serial = train(sk::Cpu{}, sk::parallel::SingleProcess{}, short_fit);
  Result r =
      train(world.where(),
            sk::parallel::ModelAverage{
                world, {.state = true, .fragments = 2}, sk::parallel::Period<1>{}, sk::parallel::DiLoCo{sk::optim::Sgd{.lr = 1}}},
            short_fit, 3 + world.rank());
  r.losses = serial.losses;
  require_same(r, serial, 2e-5);
}
/// Statistics of all ranks, the optimizer's state in parts, gradients scattered, a norm over the parts: the serial run all the
/// same.
void in_parts(sk::NcclComm& world) {
  sk::FitOptions clipped = short_fit;
  clipped.clip_norm = 0.05;
  using sk::parallel::Sharded, sk::parallel::SyncBatchNorm;
  const auto policy = sk::parallel::DataParallel{world, {.bucket_bytes = 1}, Sharded<2>{}, SyncBatchNorm{}};
  require_same(train<Coupled>(world.where(), policy, clipped), train<Coupled>(sk::Cpu{}, sk::parallel::SingleProcess{}, clipped),
               2e-5);
  sk::FitOptions accumulated = short_fit;
  accumulated.batch = 10;
  accumulated.step.accumulate = 2;
  const Result r = train<Coupled>(world.where(), sk::parallel::DataParallel{world, SyncBatchNorm{}}, accumulated);
  require_same(r, train<Coupled>(sk::Cpu{}, sk::parallel::SingleProcess{}, accumulated), 2e-5);
  RANK_CHECK(r.replays == 0);  // a step without an update asks the other ranks too
}
/// Under a transform of tensors slices end at parameters, and the norm behind it is one over all of them.
void chains_in_parts(sk::NcclComm& world) {
  using namespace sk::optim;
  const auto chain = sk::optim::chain(ClipNorm{0.2f}, Lars{.trust = 0.05f}, ClipNorm{0.02f}, Sgd{.lr = 0.3f, .momentum = 0.9f});
  const Result serial = train(sk::Cpu{}, sk::parallel::SingleProcess{}, short_fit, 3, chain);
  require_same(train(world.where(), sk::parallel::DataParallel{world}, short_fit, 3, chain), serial, 2e-5);
  require_same(train(world.where(), sk::parallel::DataParallel{world, sk::parallel::Sharded<2>{}}, short_fit, 3, chain), serial,
               2e-5);
}
/// An exchange of one's own moves the device's memory, as on the host.
void in_two_halves(sk::NcclComm& world) {
  using sk::parallel::DataParallel, sk::parallel::ExchangeBy;
  const Result serial = train(sk::Cpu{}, sk::parallel::SingleProcess{}, short_fit);
  for (const long bucket : {1L, 1L << 20})
    require_same(train(world.where(), DataParallel{world, {.bucket_bytes = bucket}, ExchangeBy<InTwoHalves>{}}, short_fit),
                 serial, 2e-5);
}
/// One rank's step waits for its device, and cannot be captured: no rank's is.
void refused_on_rank_1(sk::NcclComm& world) {
  using Waiting = nn::Sequential<nn::Linear<9>, refused_capture_test::WaitsOn, nn::Linear<3>>;
  refused_capture_test::waits = world.rank() == 1;
  sk::Model<Waiting, sk::Shape<4>, sk::Cuda> model{sk::Seed{3}, world.where()};
  const Points points;
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
  step.reserve({.capacity = 6, .threads = 1});
  for (int s = 0; s < 8; ++s) (void)step.step(points.batch(6 * s, 6));
  RANK_CHECK(step.totals().weight > 0);
  RANK_CHECK(step.device().replays() == 0);
  RANK_CHECK(step.device().graphs() == 0);
  const std::string& note = step.device().note();
  RANK_CHECK(note.starts_with("steps are launched kernel by kernel, since they cannot be captured: "));
  RANK_CHECK(world.rank() == 1 || note.ends_with("rank 1's were refused"));
}
/// The batches of one rank lie anywhere on its device, it evaluates others in between, a step of it is refused, and its workspace
/// grows: all replay what they have captured together.
void batches_elsewhere(sk::NcclComm& world) {
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{3}, world.where()};
  sk::Model<Net, sk::Shape<4>> serial{sk::Seed{3}};
  const Points points;
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
  sk::train::TrainStep alone{serial, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 20, .threads = 1});
  alone.reserve({.capacity = 20, .threads = 1});
  std::vector<sk::Arena<float, sk::Cuda>> places;
  for (int s = 0; s < 50; ++s) {
    const long begin = s % 5 * 20, mine = world.rank() == 0 ? 10 : 10 / (world.size() - 1);
    auto batch = points.batch(begin + (world.rank() == 0 ? 0 : 10 + mine * (world.rank() - 1)), mine);
    batch.global_count = 20;
    if (world.rank() == 1) {  // each in memory of its own
      const auto there = [&](const float* from, std::size_t n) {
        places.emplace_back(n, world.where());
        sk::Copy<sk::Cuda, sk::Cpu>::run(places.back().data(), from, n * sizeof(float), world.where(), sk::Cpu{});
        return places.back().data();
      };
      sk::BatchView<float, sk::Cuda> on_device{.pitch = batch.pitch, .count = batch.count, .global_count = 20};
      on_device.x = there(batch.x, static_cast<std::size_t>(batch.count * batch.pitch));
      on_device.targets = there(batch.targets, static_cast<std::size_t>(batch.count * batch.target_pitch));
      on_device.target_pitch = batch.target_pitch;
      (void)step.step(on_device);
      if (s % 9 == 5) try {
          (void)step.step(batch, {.accumulate = true});  // to nothing
          RANK_CHECK(false);
        } catch (const sk::ArgumentError&) {}
      if (s % 7 == 3) (void)step.evaluate(batch), (void)sk::cuda::workspace().get(static_cast<std::size_t>(s + 1) << 16);
    } else {
      (void)step.step(batch);
    }
    (void)alone.step(points.batch(begin, 20));
  }
  RANK_CHECK(std::abs(step.totals().mean() - alone.totals().mean()) < 2e-5);
  RANK_CHECK(step.device().replays() == 49);
  RANK_CHECK(step.device().graphs() == 2);
  RANK_CHECK(step.device().note().empty());
}
/// One rank predicts alone before a fit, has other threads than the others, and makes its executor anew where they have room: all
/// capture again together.
void remade_on_one_rank(sk::NcclComm& world) {
  const Points points;
  const auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{3}, world.where()};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
  sk::FitOptions options = short_fit;
  options.progress = false;
  if (world.rank() == 0) { (void)trainer.predict(data); }
  trainer.fit(data, options);
  const long before = trainer.train_step().device().replays();
  RANK_CHECK(before > 0);
  options.threads = 1 + (world.rank() == 1);
  trainer.fit(data, options);
  (void)trainer.evaluate(data, {.batch = 100});
  trainer.fit(data, options);
  RANK_CHECK(trainer.train_step().device().replays() > before);
  std::vector<float> weights(std::as_const(model).parameters().size);
  sk::Copy<sk::Cpu, sk::Cuda>::run(weights.data(), std::as_const(model).parameters().data, weights.size() * sizeof(float),
                                   sk::Cpu{}, world.where());
  const std::vector<double> all = world.all_gather(static_cast<double>(weights[5]));
  for (const double w : all) RANK_CHECK(w == all[0]);
}
/// A rank without a graph of its own would never meet the others' captures.
void graphs_on_some_ranks(sk::NcclComm& world) {
  sk::FitOptions options = short_fit;
  options.compute.graph = world.rank() == 0;
  (void)train(world.where(), sk::parallel::DataParallel{world}, options);
}
/// An overflow of one rank's own gradients skips the step on all, and lowers the scale on all: averages of models meet.
void skips_together(sk::NcclComm& world) {
  using namespace sk::parallel;
  const auto course = [&](const auto& policy) {
    sk::Model<Net, sk::Shape<4>, sk::Cuda, sk::precision::fp16> model{sk::Seed{3}, world.where()};
    sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, policy};
    step.reserve({.capacity = 6, .threads = 1});
    step.set_loss_scaling({.initial = 1024});
    Points good, bad;
    if (world.rank() == world.size() - 1) bad.y[0] = 1e8f;
    for (const Points* points : {&good, &bad, &good, &good, &good}) (void)step.step(points->batch(0, 6));
    RANK_CHECK(step.steps() == 4);
    RANK_CHECK(step.loss_scaler().skipped() == 1);
    RANK_CHECK(step.loss_scaler().scale() == 512);
    step.policy_state().finish();
    std::vector<float> weights(std::as_const(model).parameters().size);
    sk::Copy<sk::Cpu, sk::Cuda>::run(weights.data(), std::as_const(model).parameters().data, weights.size() * sizeof(float),
                                     sk::Cpu{}, world.where());
    for (const float w : weights) RANK_CHECK(std::isfinite(w));
  };
  course(ModelAverage{world, Period<2>{}});
  course(DataParallel{world, SyncEvery<3>{}});
}
std::atomic<bool> sums_were_given{false};
/// Rank 1 gives up instead of its third step: whoever asks for the sums of that step hears of it.
void given_up(sk::NcclComm& world) {
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{3}, world.where()};
  const Points points;
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
  step.reserve({.capacity = 10, .threads = 1});
  for (int s = 0; s < 2; ++s) (void)step.step(points.batch(10 * s, 10)).mean();
  if (world.rank() == 1) return world.fail("enough");
  (void)step.step(points.batch(20, 10)).mean();
  sums_were_given = true;
}
void on_another_device(sk::NcclComm& world) {
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{3}, sk::Cuda{0}};  // whatever the rank
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
}
}  // namespace

TEST_CASE("data-parallel training on devices of one process agrees with the serial run on the Cpu") {
  const int devices = GENERATE(1, 2, 4);
  if (sk::cuda::device_count() < devices) {
    WARN("needs " << devices << " devices");
    return;
  }
  CHECK(on_devices(devices, same_as_serial) == "");
  CHECK(on_devices(devices, launched, false) == "");
  CHECK(on_devices(devices, averages) == "");
  CHECK(on_devices(devices, in_parts) == "");
  CHECK(on_devices(devices, chains_in_parts) == "");
  CHECK(on_devices(devices, in_two_halves) == "");
}

TEST_CASE("ranks launch captured steps at the same time, or none does") {
  const int devices = GENERATE(2, 3);
  if (sk::cuda::device_count() < devices) {
    WARN("needs " << devices << " devices");
    return;
  }
  CHECK(on_devices(devices, refused_on_rank_1) == "");
  CHECK(on_devices(devices, batches_elsewhere) == "");
  CHECK(on_devices(devices, remade_on_one_rank) == "");
  CHECK_THAT(on_devices(devices, graphs_on_some_ranks), Contains(".compute.graph"));
}

TEST_CASE("the sums of a step whose exchange was given up are not given") {
  if (sk::cuda::device_count() < 2) return;
  CHECK_THAT(on_devices(2, given_up, true, 20), Contains("enough"));
  CHECK_FALSE(sums_were_given);
}

TEST_CASE("ranks on devices whose gradients are their own skip a step together") {
  const int devices = GENERATE(1, 2, 3);
  if (sk::cuda::device_count() < devices) {
    WARN("needs " << devices << " devices");
    return;
  }
  CHECK(on_devices(devices, skips_together, true, 20) == "");
}

TEST_CASE("a model on another device than its rank's communicator is refused") {
  if (sk::cuda::device_count() < 2) return;
  const std::string text = on_devices(2, on_another_device);
  CHECK_THAT(text,
             Contains("the model is on Cuda 0, this rank's communicator on Cuda 1: make the model with {seed, world.where()}"));
}
