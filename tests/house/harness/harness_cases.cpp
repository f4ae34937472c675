// SPDX-License-Identifier: Apache-2.0
// What the harness for ranks must notice: a case that fails on one rank only, and one that a rank never leaves.
#include <catch2/catch.hpp>
#include <mpi.h>

#include <chrono>
#include <thread>

namespace {
int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
}  // namespace

TEST_CASE("passes", "[.]") { CHECK(rank() >= 0); }

TEST_CASE("fails_on_rank_2", "[.]") { CHECK(rank() != 2); }

TEST_CASE("hangs_on_rank_1", "[.]") {
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::minutes(1));
  CHECK(true);
}
