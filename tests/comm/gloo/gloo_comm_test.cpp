// SPDX-License-Identifier: Apache-2.0
// GlooComm without MPI: how its ranks meet, and what they hear of one that is killed. The collectives are in
// tests/distributed/gloo.cpp.
#include "skein/comm/gloo/gloo_comm.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../support/processes.hpp"
#include "../../support/temporary_folder.hpp"

namespace sk = skein;
using Catch::Matchers::Contains;

namespace {
sk::CommOptions options(bool shared_memory, double deadline = 20) {
  sk::CommOptions o;
  o.shared_memory = shared_memory;
  o.deadline = deadline;
  return o;
}
std::string sum_of(sk::GlooComm& world) { return std::to_string(world.all_reduce(world.rank() + 1)); }
}  // namespace

TEST_CASE("a GlooComm that nothing has launched is a world of one") {
  int argc = 0;
  char** argv = nullptr;
  sk::GlooComm world{argc, argv};
  CHECK(world.size() == 1);
  CHECK(sum_of(world) == "1");
}

TEST_CASE("ranks of torchrun meet by what it says") {
  const bool shared = GENERATE(true, false);
  int port = 0;
  {
    sk::comm::control::Listener listener({"127.0.0.1", 0});
    port = listener.port();
  }
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", "3", 1);
    ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    int argc = 0;
    char** argv = nullptr;
    sk::GlooComm world{argc, argv, options(shared)};
    return sum_of(world) + (world.shares_memory() ? " in memory" : "");
  });
  const std::string wanted = shared ? "6 in memory" : "6";
  CHECK(said == std::vector<std::string>{wanted, wanted, wanted});
}

TEST_CASE("a rank that is killed inside a collective is named by the others, long before the deadline") {
  const bool shared = GENERATE(true, false);
  const int killed = GENERATE(0, 1);
  const support::TemporaryFolder folder;
  const std::string file = folder / "meeting";
  const std::vector<std::string> said = support::run_processes(3, [&](int rank) -> std::string {
    sk::GlooComm world = sk::GlooComm::from_file(file, rank, 3, options(shared, 600));
    std::vector<float> data(300000, 1);
    world.all_reduce(data);
    if (rank == killed) ::raise(SIGKILL);
    try {
      while (true) world.all_reduce(data);
    } catch (const sk::CommError& e) { return e.what(); }
  });
  for (int r = 0; r < 3; ++r)
    if (r != killed)
      CHECK_THAT(said[static_cast<std::size_t>(r)], Contains("rank " + std::to_string(killed)) && Contains("killed"));
}
