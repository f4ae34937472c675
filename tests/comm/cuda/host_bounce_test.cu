// SPDX-License-Identifier: Apache-2.0
// HostBounce over threads: the collectives of the host's communicator, bit for bit, for memory of devices.
#include "skein/comm/cuda/host_bounce.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "skein/comm/thread/spawn.hpp"
#include "skein/device/cuda/launch.hpp"
#include "skein/nn/weights.hpp"
#include "skein/tensor/create.hpp"
#include "support/host_bounce_cases.hpp"
#include "support/thrown.hpp"

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

namespace {
/// The device's stream is so long at something else.
void keep_busy(sk::Cuda where) {
  const auto busy = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  sk::cuda::check(cudaLaunchHostFunc(sk::cuda::stream(where), busy, nullptr), "cudaLaunchHostFunc");
}
}  // namespace

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
          keep_busy(world.where());
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

TEST_CASE("what the host does for all ranks comes behind the calls that were started before, on each rank alike") {
  if (sk::cuda::device_count() == 0) return;
  const int what = GENERATE(0, 1, 2, 3);
  const auto program = [what](sk::ThreadComm& threads) {
    World world{threads};
    host_bounce_cases::OnDevice<double> data({world.rank() + 1.0}, world.where());
    if (world.rank() == 1) keep_busy(world.where());
    auto started = world.start_all_reduce(data.span());
    if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // its copy is done
    (void)started.poll();
    if (what == 0) world.barrier();
    if (what == 1) collectives::require(world.all_reduce(5.0) == 10, "a value of the host");
    if (what == 2) world.assert_same("the plan", 17);
    if (what == 3) collectives::require(world.split(0).all_reduce(1) == 2, "a value of a part");
    started.wait();
    collectives::require(data.get() == std::vector<double>{3}, "the sum that was started before");
  };
  CHECK_NOTHROW(sk::spawn(2, program, {.deadline = 5}));
}

TEST_CASE("a call of a communicator that has failed is not over, whoever has noticed it") {
  if (sk::cuda::device_count() == 0) return;
  std::string waited, polled, started;
  const auto program = [&](sk::ThreadComm& threads) {
    World world{threads};
    sk::ThreadComm other = threads.split(0);
    if (world.rank() == 1) {
      other.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      throw std::runtime_error("rank 1 has found no file");
    }
    host_bounce_cases::OnDevice<float> data(std::vector<float>(100, 1.0f), world.where());
    auto first = world.start_all_reduce(data.span()), second = world.start_all_reduce(data.span());
    other.barrier();
    (void)support::thrown([&] { other.barrier(); });  // it looks at what was started meanwhile
    polled = support::thrown([&] { (void)second.poll(); });
    waited = support::thrown([&] { first.wait(); });
    started = support::thrown([&] { world.all_reduce(data.span()); });
    collectives::require(data.get() == std::vector<float>(100, 1.0f), "what nobody has added to");
  };
  CHECK_THROWS_WITH(sk::spawn(2, program, {.deadline = 5}), Catch::Matchers::Contains("rank 1 has found no file"));
  for (const std::string& text : {waited, polled, started}) CHECK_THAT(text, Catch::Matchers::Contains("no file"));
}

TEST_CASE("nothing is copied into the span of a call that has failed") {
  if (sk::cuda::device_count() == 0) return;
  std::string text, again;
  const auto program = [&](sk::ThreadComm& threads) {
    World world{threads};
    sk::ThreadComm other = threads.split(0);
    host_bounce_cases::OnDevice<float> data(std::vector<float>(100, 1.0f), world.where());
    if (world.rank() == 1) {
      other.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      (void)support::thrown([&] { threads.send(std::vector<float>(101), 0, 1); });
      return other.barrier();
    }
    auto came = world.irecv(data.span(), 1, 1);
    other.barrier();
    text = support::thrown([&] { came.wait(); });
    again = support::thrown([&] { world.engine().progress(); });
    collectives::require(data.get() == std::vector<float>(100, 1.0f), "a span of a message of another length");
    other.barrier();
  };
  CHECK_THROWS_AS(sk::spawn(2, program, {.deadline = 5}), sk::CommError);
  CHECK_THAT(text, Catch::Matchers::Contains("recv on rank 0"));
  CHECK(again == text);
}
