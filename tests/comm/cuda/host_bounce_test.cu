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
#include "skein/nn/weights.hpp"
#include "skein/tensor/create.hpp"
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

TEST_CASE("a tensor and a lease of weights are spans of their device") {
  if (sk::cuda::device_count() == 0) return;
  std::string text;
  try {
    sk::spawn(2, [](sk::ThreadComm& threads) {
      World world{threads};
      sk::Tensor<float, 1, sk::Cuda> t(std::vector<float>(100, static_cast<float>(1 + world.rank())), world.where());
      world.all_reduce(t);
      collectives::require(t.to<sk::Cpu>()(99) == 3, "a tensor's sum");
      sk::Weights<float, sk::Cuda> weights(100, 0, world.where());
      const sk::Tensor<float, 1> own = sk::full(sk::dims(100), static_cast<float>(5 + world.rank()));
      {
        auto lease = weights.modify();
        sk::Copy<sk::Cuda, sk::Cpu>::run(lease.data(), own.data(), 100 * sizeof(float), world.where());
      }
      world.broadcast(weights.modify(), 1);
      std::vector<float> came(100);
      sk::Copy<sk::Cpu, sk::Cuda>::run(came.data(), weights.read().data, 100 * sizeof(float), {}, world.where());
      collectives::require(came == std::vector<float>(100, 6.0f), "the weights of rank 1");
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
