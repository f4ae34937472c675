// SPDX-License-Identifier: Apache-2.0
// Where a step's time goes, of steps whose parts are slow on purpose.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/core/clock.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/timed.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/simulate/slowed.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
using sk::StepPart;

namespace {
constexpr double slow = 0.03;
void sleep() { std::this_thread::sleep_for(std::chrono::duration<double>(slow)); }

struct SlowMse : sk::nn::Mse {
  bool sleeps = true;
  template <class Scalar, class Device> sk::nn::LossSums operator()(const sk::nn::LossCall<Scalar, Device>& call) const {
    if (sleeps) sleep();
    return sk::nn::Mse::operator()(call);
  }
};
using Model = sk::Model<sk::nn::Linear<1>, sk::Shape<1>>;

/// Two steps of 8 samples of this rank; `loop_seconds` gets the time of their loop.
template <class Loss, class Policy> sk::StepClock clock_of(const Loss& loss, const Policy& policy,
                                                           const sk::ExecutorOptions& options, bool slow_loop = false,
                                                           double* loop_seconds = nullptr) {
  Model model{sk::Seed{1}};
  sk::StepClock clock;
  sk::train::TrainStep<Model, sk::nn::Timed<Loss>, sk::optim::Sgd, Policy> step(model, {loss, clock}, sk::optim::Sgd{.lr = 0.01f},
                                                                                policy);
  step.reserve(options);
  const auto data = sk::data::from_tensors(std::vector<float>(16, 0.5f), std::vector<float>(16));
  sk::data::LoaderOptions how;
  how.batch_per_rank = 8;
  how.prefetch = sk::data::Prefetch::off;
  sk::data::Loader<float> loader(data, how);
  const double before = sk::seconds_now();
  clock.restart();
  for (const auto& batch : loader.epoch(0)) {
    if (slow_loop) sleep();
    step.step(batch);
  }
  if (loop_seconds) *loop_seconds = sk::seconds_now() - before;
  return clock;
}
}  // namespace

TEST_CASE("The time of a loss is the loss's, and all parts are the time of the loop", "[train]") {
  for (const auto order : {sk::Execution::layer_wise, sk::Execution::depth_first})
    for (const int threads : {1, 3}) {
      double loop = 0;
      sk::StepClock clock;
      // On a busy machine this thread may not run for long just where no part is measured: ten times in a row it hardly will.
      for (int trial = 0; trial < 10 && (trial == 0 || clock.seconds() < 0.9 * loop); ++trial)
        clock = clock_of(SlowMse{}, sk::parallel::SingleProcess{},
                         {.capacity = 8, .execution = order, .block = 8, .threads = threads}, false, &loop);
      CHECK(clock.seconds(StepPart::loss) >= 2 * slow);
      for (const auto part : {StepPart::load, StepPart::forward, StepPart::backward, StepPart::synchronization, StepPart::update})
        CHECK(clock.seconds(part) > 0);
      CHECK(clock.seconds() >= 0.9 * loop);
      CHECK(clock.seconds() <= loop);
    }
}

TEST_CASE("What a loop does between steps is load, and what a policy does before one is synchronization", "[train]") {
  const sk::parallel::Slowed policy(sk::parallel::SingleProcess{}, {.rank = 0, .seconds = slow});
  const sk::StepClock waits = clock_of(sk::nn::Mse{}, policy, {.capacity = 8, .threads = 1});
  CHECK(waits.seconds(StepPart::synchronization) >= 2 * slow);
  const sk::StepClock loads = clock_of(sk::nn::Mse{}, sk::parallel::SingleProcess{}, {.capacity = 8, .threads = 1}, true);
  CHECK(loads.seconds(StepPart::load) >= 2 * slow);
}

TEST_CASE("A rank waits for another's gradients in synchronization", "[train]") {
  std::vector<sk::StepClock> clocks(2);
  // On a busy machine rank 0 may come as late as rank 1: ten times in a row it hardly will.
  for (int trial = 0; trial < 10 && clocks[0].seconds(StepPart::synchronization) <= slow; ++trial)
    sk::spawn(2, [&](sk::ThreadComm& world) {
      SlowMse loss;
      loss.sleeps = world.rank() == 1;
      clocks[static_cast<std::size_t>(world.rank())] =
          clock_of(loss, sk::parallel::DataParallel{world}, {.capacity = 8, .threads = 1});
    });
  CHECK(clocks[0].seconds(StepPart::synchronization) > slow);
  CHECK(clocks[1].seconds(StepPart::loss) >= 2 * slow);
}
