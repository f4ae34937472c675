// SPDX-License-Identifier: Apache-2.0
// What ends a job: run in a job of its own, which this test starts with mpirun on its own program.
#include "skein/comm/mpi/mpi_comm.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "skein/comm/mpi/boost.hpp"
#include "skein/comm/thread/spawn.hpp"

namespace sk = skein;
using Catch::Matchers::Contains;

namespace {
sk::MpiComm make_world() {
  static int argc = 0;
  static char** argv = nullptr;
  return sk::MpiComm(argc, argv);
}

/// Runs a hidden case of this program on two ranks, in a clean environment; its output and exit status.
std::pair<std::string, int> run_job(const std::string& test) {
  const std::string command =
      "program=$(readlink -f /proc/" + std::to_string(getpid()) +
      "/exe); env -i PATH=\"$PATH\" HOME=\"$HOME\" OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\" "
      "timeout 60 mpirun --oversubscribe -n 2 \"$program\" '" +
      test + "' 2>&1 < /dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char line[512];
  while (std::fgets(line, sizeof line, pipe)) text += line;
  return {text, pclose(pipe)};
}
}  // namespace

TEST_CASE("ends with an exception in a thread", "[.]") {
  sk::MpiComm world = make_world();
  if (world.rank() == 1) std::thread([] { throw sk::ShapeError("nobody catches this"); }).join();
  world.barrier();
}
TEST_CASE("ends with an exception inside run", "[.]") {
  sk::MpiComm world = make_world();
  world.run([](sk::MpiComm& w) {
    if (w.rank() == 1) throw sk::ShapeError("run ends all");
    w.barrier();
  });
}

TEST_CASE("begins again after the end of MPI", "[.]") {
  MPI_Finalize();
  try {
    (void)make_world();
  } catch (const sk::CommError& e) { std::printf("%s\n", e.what()); }
  std::fflush(stdout);
  std::_Exit(0);
}

TEST_CASE("a world after the end of MPI is refused with a sentence") {
  const auto [text, status] = run_job("begins again after the end of MPI");
  CHECK_THAT(text, Contains("MPI has ended with an earlier world"));
  CHECK(status == 0);
}

TEST_CASE("an exception that nobody catches ends all ranks with its message") {
  const auto [text, status] = run_job("ends with an exception in a thread");
  CHECK_THAT(text, Contains("rank 1: nobody catches this"));
  CHECK(status != 0);
  const auto [more, other] = run_job("ends with an exception inside run");
  CHECK_THAT(more, Contains("rank 1: run ends all"));
  CHECK(other != 0);
}

TEST_CASE("a world where MPI runs already does not finalise it") {
  {
    sk::MpiComm world = make_world();
    CHECK(world.size() >= 1);
    CHECK(world.all_reduce(1) == world.size());
  }
  CHECK(sk::comm::mpi_runs());
}

struct Plan {
  int layers = 0;
  std::vector<std::string> names;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & layers & names); }
};

TEST_CASE("Boost.MPI's communicators convert both ways, and serialisable objects travel") {
  const boost::mpi::communicator theirs;
  sk::MpiComm world{theirs};
  CHECK(world.size() == theirs.size());
  const boost::mpi::communicator back = world;
  CHECK(back.rank() == world.rank());
  CHECK(MPI_Comm(back) == world.native());

  Plan plan;
  if (world.rank() == 0) plan = {3, {"conv", "pool", "linear"}};
  sk::broadcast_object(world, plan, 0);
  CHECK(plan.names == std::vector<std::string>{"conv", "pool", "linear"});
  const std::vector<Plan> all = sk::all_gather_objects(world, Plan{world.rank(), {"x"}});
  CHECK(all.back().layers == world.size() - 1);

  sk::spawn(2, [](sk::ThreadComm& threads) {  // objects travel over any communicator of the host
    Plan p;
    if (threads.rank() == 0) sk::send_object(threads, Plan{7, {"a"}}, 1);
    else if (sk::recv_object(threads, p, 0), p.layers != 7) throw std::runtime_error("the object came wrong");
  });
}
