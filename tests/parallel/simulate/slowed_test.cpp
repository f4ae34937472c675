// SPDX-License-Identifier: Apache-2.0
// Slowed: who sleeps before which of its steps. Sleeping takes at least its time, so the tests ask for no more than that.
#include <catch2/catch.hpp>

#include <chrono>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/check_policy.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/simulate/slowed.hpp>

namespace sk = skein;

namespace {
/// The steps of six that took at least 50 ms, on rank 0.
std::vector<int> slow_steps(const sk::parallel::SlowWorker& slow) {
  std::vector<float> parameters(16), gradients(32);
  sk::parallel::Replica<float, sk::Cpu> replica;
  replica.parameters = {parameters.data(), 16};
  replica.gradients = {gradients.data(), 32};
  replica.stored = 16;
  sk::SelfComm self;
  auto policy_state = sk::parallel::Slowed{sk::parallel::DataParallel{self}, slow}.bind(replica);
  std::vector<int> found;
  for (int step = 1; step <= 6; ++step) {
    bool slept = true;
    for (int trial = 0; trial < 5 && slept; ++trial) {  // a busy machine lets some of them stand still
      const auto begin = std::chrono::steady_clock::now();
      CHECK_FALSE(policy_state.before_step(step));
      slept = std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20);
    }
    if (slept) found.push_back(step);
  }
  return found;
}
}  // namespace

TEST_CASE("a slow worker sleeps before its steps, the others keep the pace", "[parallel]") {
  CHECK(slow_steps({.rank = 0, .seconds = 0.02, .every = 3}) == std::vector<int>{3, 6});
  CHECK(slow_steps({.rank = 1, .seconds = 0.02}).empty());
  CHECK(slow_steps({.rank = 1, .seconds = 0, .others = 0.02}).size() == 6);
  CHECK(slow_steps({.rank = sk::parallel::each_in_turn, .seconds = 0.02, .every = 2}) == std::vector<int>{2, 4, 6});
}

TEST_CASE("a Compose can be slowed as any other policy", "[parallel]") {
  using namespace sk::parallel;
  sk::SelfComm self;
  const Slowed policy{Compose{ModelAverage{self, Period<2>{}}}};
  assert_policy<std::remove_const_t<decltype(policy)>, Replica<float, sk::Cpu>>();
  std::vector<float> parameters(16), gradients(32);
  Replica<float, sk::Cpu> replica;
  replica.parameters = {parameters.data(), 16};
  replica.gradients = {gradients.data(), 32};
  replica.stored = 16;
  CHECK_FALSE(policy.bind(replica).synchronizes_gradients());
}
