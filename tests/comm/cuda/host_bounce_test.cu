// SPDX-License-Identifier: Apache-2.0
// HostBounce over threads: the collectives of the host's communicator, bit for bit, for memory of devices.
#include "skein/comm/cuda/host_bounce.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "skein/comm/thread/spawn.hpp"
#include "skein/device/cuda/launch.hpp"
#include "support/host_bounce_cases.hpp"

namespace sk = skein;
using World = sk::HostBounce<sk::ThreadComm>;

static_assert((sk::assert_communicator<World, sk::Cuda>(), true));
static_assert(sk::AllReduces<World> && sk::StartsAllReduce<World> && sk::ReduceScatters<World> && sk::Sends<World> &&
              sk::Splits<World>);
static_assert(sk::Reduces<World, float, collectives::Weighted>);  // it runs on the host
static_assert(sk::comm::sound<World, sk::Cuda>);
static_assert(!sk::comm::can<World, sk::comm::Capability::captures>);

TEST_CASE("staged collectives have the bits of the host's") {
  const int ranks = GENERATE(1, 2, 3, 4);
  if (sk::cuda::device_count() == 0) return;
  std::string text;
  try {
    sk::spawn(ranks, [](sk::ThreadComm& threads) {
      World world{threads};
      host_bounce_cases::staged_everything(world);
    });
  } catch (const sk::Error& e) { text = e.what(); }
  CHECK(text == "");
}

TEST_CASE("staged messages cross although the GPU is busy when they are started") {
  if (sk::cuda::device_count() == 0) return;
  std::string text;
  sk::CommOptions options;
  options.deadline = 5;
  try {
    sk::spawn(
        2,
        [](sk::ThreadComm& threads) {
          World world{threads};
          const int me = world.rank(), other = 1 - me;
          host_bounce_cases::OnDevice<float> out(std::vector<float>(30000, static_cast<float>(me)), world.where()),
              in(std::vector<float>(30000), world.where());
          const auto busy = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
          sk::cuda::check(cudaLaunchHostFunc(sk::cuda::stream(world.where()), busy, nullptr), "cudaLaunchHostFunc");
          auto sent = world.isend(out.span(), other, 1);
          auto came = world.irecv(in.span(), other, 1);
          sent.wait();
          came.wait();
          collectives::require(in.get() == std::vector<float>(30000, static_cast<float>(other)), "what has crossed");
        },
        options);
  } catch (const sk::Error& e) { text = e.what(); }
  CHECK(text == "");
}
