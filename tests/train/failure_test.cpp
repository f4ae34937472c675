// SPDX-License-Identifier: Apache-2.0
// Failures inside a step, over threads, with several threads a rank: tests/distributed/failure.cpp has those of processes.
#include <skein/comm/thread/spawn.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>

#include "../support/failure_cases.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace cases = failure_cases;
namespace sk = skein;

namespace {
/// What the fit of two ranks throws, of which rank 1 differs.
std::string of_two(cases::Case usual, cases::Case other, sk::Execution execution = sk::Execution::layer_wise) {
  return cases::thrown([&] {
    sk::spawn(2,
              [&](sk::ThreadComm& world) {
                cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? other : usual, execution);
              },
              {.deadline = 60});
  });
}

/// A policy one of whose hooks throws once: 0: where gradients become ready, 1: where they are waited for.
struct ThrowingPolicyState : sk::parallel::PolicyState {
  int hook = 0;
  bool* armed = nullptr;
  static constexpr sk::parallel::Capabilities capabilities{sk::parallel::Capability::synchronizes_gradients};
  static constexpr bool synchronizes_gradients() { return true; }
  void pull(int h) {
    if (h == hook && std::exchange(*armed, false)) throw std::runtime_error("hook " + std::to_string(h) + " throws");
  }
  void gradient_ready(long, long) { pull(0); }
  void finish_gradients() { pull(1); }
};
struct ThrowingPolicy : sk::parallel::PolicyBase {
  ThrowingPolicy(int which, bool* once) : hook(which), armed(once) {}
  int hook;
  bool* armed;
  template <class R> ThrowingPolicyState bind(const R&) const {
    ThrowingPolicyState s;
    s.hook = hook;
    s.armed = armed;
    return s;
  }
};
}  // namespace

TEST_CASE("what fails in a step of one rank ends the fit of all, with any number of threads a rank", "[train]") {
  const int threads = GENERATE(1, 2, 4);
  CAPTURE(threads);
  const cases::Case usual{.threads = threads};
  cases::Case other = usual;
  CHECK(of_two(usual, other).empty());

  SECTION("a wrong label") {
    other.wrong_label = true;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank 1 failed: ") && Catch::Contains("has the label 7"));
  }
  SECTION("another batch") {
    other.batch = 16;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank"));
  }
  SECTION("fewer samples") {
    other.samples = 24;  // one step an epoch
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank"));
  }
  SECTION("fewer epochs") {
    other.epochs = 1;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank"));
  }
  SECTION("a layer that throws forward") {
    other.value = cases::forward_throws;
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK_THAT(of_two(usual, other, execution), Catch::Contains("rank 1 failed: a layer throws forward"));
  }
  SECTION("a layer that throws backward") {
    other.value = cases::backward_throws;
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK_THAT(of_two(usual, other, execution), Catch::Contains("rank 1 failed: a layer throws backward"));
  }
  SECTION("a loss that throws") {
    other.value = cases::loss_throws;
    CHECK_THAT(of_two(usual, other), Catch::Contains("rank 1 failed: the loss throws"));
  }
}

TEST_CASE("a policy's hook that throws ends the step, which is not counted, and the next ones are right", "[train]") {
  const int threads = GENERATE(1, 2, 4), hook = GENERATE(0, 1);
  CAPTURE(threads, hook);
  const auto weights = [&](bool armed) {
    cases::Model model{sk::Seed{5}};
    sk::train::TrainStep train_step{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, ThrowingPolicy{hook, &armed}};
    train_step.reserve({.capacity = 12, .execution = sk::Execution::layer_wise, .threads = threads});
    sk::Arena<float> x(12 * sk::row_pitch(12));
    std::vector<std::int32_t> labels(12);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = sk::random_uniform(1, 0, i);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 4);
    sk::data::Batch<float> batch;
    batch.x = x.data();
    batch.pitch = sk::row_pitch(12);
    batch.sample = {1, {12}};
    batch.labels = labels.data();
    batch.count = batch.global_count = 12;
    if (armed) CHECK_THROWS_WITH(train_step.step(batch), "hook " + std::to_string(hook) + " throws");
    CHECK(train_step.steps() == 0);
    for (int i = 0; i < 3; ++i) train_step.step(batch);
    CHECK(train_step.steps() == 3);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  CHECK(weights(true) == weights(false));
}
