// SPDX-License-Identifier: Apache-2.0
// The interpreter of a step: which stages run, in what order, and who waits for whom.
#include <catch2/catch.hpp>

#include <array>
#include <atomic>

#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/step/run_stages.hpp>

namespace sk = skein;
namespace train = skein::train;

namespace {
using Model = sk::Model<sk::nn::Linear<2>, sk::Shape<3>>;
using Parts = train::StepParts<Model, sk::nn::Mse, sk::optim::Sgd, sk::parallel::PolicyState>;

constexpr int workers = 3;
std::array<std::atomic<int>, 4> entered{};  // workers that have been in each stage
std::atomic<bool> early{false};             // one was in a stage that waits before all had been in the one before
bool goes_on = true;

template <int Number, bool OfUpdates, bool Waits, bool Used = true> struct Stage {
  template <class P> static constexpr bool used = Used;
  static constexpr bool of_updates = OfUpdates, waits = Waits;
  template <class P> static bool run(train::WorkerStep<P>&) {
    if constexpr (Waits && Number > 0)
      if (entered[Number - 1] != workers) early = true;
    ++entered[Number];
    return Number != 2 || goes_on;
  }
};
using Stages = train::StageList<Stage<0, false, false>, Stage<1, false, true>, Stage<3, false, true, false>, Stage<2, true, true>,
                                Stage<3, true, false>>;

std::array<int, 4> run(bool update) {
  Model model;
  Parts parts(model, {}, sk::optim::Sgd{}, sk::parallel::SingleProcess{});
  train::StepState<Parts> step;
  step.update = update;
  for (auto& n : entered) n = 0;
  sk::Workers team(workers);
  team.run([&](sk::Worker& w) { Stages::run(w, parts, step); });
  CHECK_FALSE(early);
  return {entered[0], entered[1], entered[2], entered[3]};
}
}  // namespace

TEST_CASE("Every worker runs every stage that the training has, after all have ended the one before where it waits", "[train]") {
  goes_on = true;
  for (int i = 0; i < 20; ++i) CHECK(run(true) == std::array<int, 4>{workers, workers, workers, workers});
}
TEST_CASE("A call that does not update leaves those stages out", "[train]") {
  goes_on = true;
  CHECK(run(false) == std::array<int, 4>{workers, workers, 0, 0});
}
TEST_CASE("A stage can end the step", "[train]") {
  goes_on = false;
  CHECK(run(true) == std::array<int, 4>{workers, workers, workers, 0});
}
