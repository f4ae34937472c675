// SPDX-License-Identifier: Apache-2.0
// Which rank says that a step cannot be captured.
#include <catch2/catch.hpp>

#include <atomic>

#include <skein/comm/thread/spawn.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/step/captured_step.hpp>

namespace sk = skein;

TEST_CASE("a step that a rank of a part cannot capture is said of its number in the world", "[train]") {
  std::atomic<int> wrong{0};
  sk::spawn(5, [&](sk::ThreadComm& world) {
    sk::ThreadComm part = world.split(world.rank() == 0 ? 0 : 1);
    auto state = sk::parallel::DataParallel{part}.bind(sk::parallel::Replica<float, sk::Cpu>{});
    const int refusing = world.rank() == 0 ? -1 : 3;
    wrong += sk::train::first_refusing(state, world.rank() == 3) != refusing;
    wrong += sk::train::first_refusing(state, false) != -1;
  });
  CHECK(wrong == 0);
}
