// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/measure.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>

#include <cmath>

#include "../support/rank_check.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace comm = skein::comm;

namespace {
const comm::MeasureOptions quick{.bytes = {64, 4096, 65536}, .repeats = 3};

template <class Comm> void same_everywhere(Comm& world, const comm::MeasuredNetwork& network) {
  auto first = network.values();
  world.broadcast(first, 0);
  RANK_CHECK(first == network.values());
}
}  // namespace

TEST_CASE("a measured network is finite, and the same on all ranks", "[comm]") {
  const int ranks = GENERATE(2, 4);
  CHECK_NOTHROW(sk::spawn(ranks,
                          [](sk::ThreadComm& world) {
                            for (const int node : {0, 1, 2}) {
                              comm::MeasureOptions options = quick;
                              options.node = node;
                              const comm::MeasuredNetwork network = comm::measure_network(world, options);
                              for (const double x : network.values()) RANK_CHECK(std::isfinite(x) && x >= 0);
                              for (const sk::plan::Level& level : {network.network.near, network.network.far, network.own})
                                RANK_CHECK(level.seconds(1 << 20) > 0);
                              RANK_CHECK(network.network.node == (node > 0 && node < world.size() ? node : 0));
                              RANK_CHECK(network.network.gamma > 0);
                              same_everywhere(world, network);
                            }
                          },
                          {.deadline = 60}));
  sk::SelfComm self;
  CHECK(comm::measure_network(self) == comm::MeasuredNetwork{});
}

TEST_CASE("what cannot be measured is refused", "[comm]") {
  const auto refused = [](const comm::MeasureOptions& options) {
    return support::thrown([&] { sk::spawn(2, [&](sk::ThreadComm& world) { (void)comm::measure_network(world, options); }); });
  };
  CHECK_THAT(refused({.bytes = {64, 128}, .repeats = 0}),
             Catch::Matchers::Contains("MeasureOptions: .repeats is at least 1; it is 0"));
  CHECK_THAT(refused({.bytes = {64, -1}}),
             Catch::Matchers::Contains("MeasureOptions: .bytes are sizes of messages, 0 or more; one is -1"));
}

TEST_CASE("a network is measured once, and found in a file", "[comm]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "network";
  const comm::MeasuredNetwork known = comm::MeasuredNetwork::of({1e-6, 1e-10, 2e-6, 3e-10, 1, 4e-11, 5e-6, 6e-10});
  {
    const comm::NetworkCache cache(path);
    comm::MeasuredNetwork found;
    CHECK_FALSE(cache.find("ThreadComm 3 ranks, 1 a node", found));
    cache.add("ThreadComm 3 ranks, 1 a node", known);
    REQUIRE(cache.find("ThreadComm 3 ranks, 1 a node", found));
    CHECK(found == known);                                                                    // to the bit
    std::ofstream(path, std::ios::app) << "ThreadComm 3 ranks, 1 a node = 1 2 nonsense\n\n";  // no entry
    REQUIRE(cache.find("ThreadComm 3 ranks, 1 a node", found));
    CHECK(found == known);
  }
  setenv("SKEIN_NETWORK", path.c_str(), 1);
  CHECK_NOTHROW(sk::spawn(3,
                          [&](sk::ThreadComm& world) {
                            comm::MeasureOptions options = quick;
                            options.node = 1;
                            RANK_CHECK(comm::measured_network(world, options) == known);  // from the file
                            options.node = 3;
                            const comm::MeasuredNetwork first = comm::measured_network(world, options);
                            same_everywhere(world, first);
                            RANK_CHECK(comm::measured_network(world, options) == first);  // a second measurement would differ
                            comm::MeasuredNetwork kept;
                            RANK_CHECK(comm::NetworkCache(path).find("ThreadComm 3 ranks, 3 a node", kept) && kept == first);
                          },
                          {.deadline = 60}));
  unsetenv("SKEIN_NETWORK");
}
