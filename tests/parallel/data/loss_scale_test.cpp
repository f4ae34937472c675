// SPDX-License-Identifier: Apache-2.0
// Loss scaling over threads at 1, 2 and 3 ranks; tests/distributed has the same over processes.
#include "../../support/loss_scale_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace cases = loss_scale_cases;
namespace sk = skein;

TEST_CASE("an overflow on one rank skips the step on all", "[parallel]") {
  for (int n : {1, 2, 3}) {
    INFO(n << " ranks");
    CHECK_NOTHROW(sk::spawn(n, [](sk::ThreadComm& world) { cases::all(world); }, {.deadline = 120}));
  }
}

TEST_CASE("an overflow in a part of the ranks skips the step on all", "[parallel]") {
  for (int n : {3, 4}) {
    INFO(n << " ranks");
    CHECK_NOTHROW(sk::spawn(n, [](sk::ThreadComm& world) { cases::skips_beyond_a_part(world); }, {.deadline = 20}));
  }
}

TEST_CASE("a step of one rank is skipped too", "[parallel]") {
  for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
    for (int threads : {1, 2}) CHECK_NOTHROW(cases::skips(sk::parallel::SingleProcess{}, 0, 1, threads, execution));
}

TEST_CASE("ranks that compute in other types refuse to start together", "[parallel]") {
  const auto other = [](sk::ThreadComm& world) {
    cases::Model<sk::precision::fp16> fp16;
    cases::Model<sk::precision::bf16> bf16;
    const sk::parallel::DataParallel policy{world};
    if (world.rank() == 0) sk::train::TrainStep{fp16, skein::nn::Mse{}, sk::optim::Adam{}, policy};
    else sk::train::TrainStep{bf16, skein::nn::Mse{}, sk::optim::Adam{}, policy};
  };
  CHECK_THROWS_AS(sk::spawn(2, other, {.deadline = 120}), sk::CommError);
}
