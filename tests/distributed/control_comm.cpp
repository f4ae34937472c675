// SPDX-License-Identifier: Apache-2.0
// A coordinator whose ranks are processes that met over MPI: MPI carries the meeting place, nothing else.
#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../support/collectives.hpp"
#include "skein/comm/control/control_comm.hpp"
#include "skein/mpi.hpp"

namespace sk = skein;
using namespace std::chrono_literals;

TEST_CASE("ranks of MPI meet at a coordinator, and agree there") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::ControlComm world = sk::ControlComm::over(mpi, 30);
  CHECK(world.rank() == mpi.rank());
  CHECK(world.size() == mpi.size());
  std::vector<float> a = collectives::values<float>(world.rank(), 5000), b = a;
  world.all_reduce(a, sk::Mean{});
  mpi.all_reduce(b, sk::Mean{});
  CHECK(collectives::same_bits(a, b));  // the order of the ranks in both
  sk::ControlComm half = world.split(world.rank() % 2, -world.rank());
  int sum = 0;
  for (int r = world.rank() % 2; r < world.size(); r += 2) sum += r;
  CHECK(half.all_reduce(world.rank()) == sum);
  world.assert_same("the plan", 17);
}

TEST_CASE("a rank that does not come to the coordinator's call is named on every rank") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  if (mpi.size() == 1) return;
  std::string text;
  {
    sk::ControlComm world = sk::ControlComm::over(mpi, 30);
    world.barrier();
    world.set_deadline(2.5);
    char given_up = 0;
    if (world.rank() == 1) MPI_Recv(&given_up, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    try {
      world.barrier();
    } catch (const sk::CommError& e) { text = e.what(); }
    if (world.rank() == 0) MPI_Send("x", 1, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  }
  CHECK(text == "barrier (call 1): rank 1 did not arrive within 2.5 s");
  mpi.barrier();
}
