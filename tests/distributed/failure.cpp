// SPDX-License-Identifier: Apache-2.0
// Failures inside a step, over processes, with several threads a rank: each of these used to leave a rank's other threads in a
// barrier for ever.
#include "../support/failure_cases.hpp"

#include <skein/mpi.hpp>

#include <catch2/catch.hpp>

namespace cases = failure_cases;
namespace sk = skein;

namespace {
/// What this rank's fit throws, of ranks of which rank 1 differs.
std::string of_all(bool shared, double deadline, const cases::Case& usual, const cases::Case& other) {
  sk::CommOptions o;
  o.deadline = deadline;
  o.shared_memory = shared;
  o.check = true;
  std::string text;
  {
    sk::MpiComm world{MPI_COMM_WORLD, o};
    text = cases::thrown([&] { cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? other : usual); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return text;
}
}  // namespace

TEST_CASE("what fails in a step of one process is named on the others within the deadline, with any number of threads a rank",
          "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1 || size > 3) return;
  const int threads = GENERATE(1, 2, 4);
  const bool shared = GENERATE(true, false);
  CAPTURE(threads, shared);
  const cases::Case usual{.threads = threads};
  cases::Case other = usual;

  SECTION("a rank that stands still for longer than the deadline") {
    other.sleep = 4;
    CHECK_THAT(of_all(shared, 1, usual, other), Catch::Contains("rank 1 did not arrive within 1 s"));
  }
  SECTION("a rank that is missing, since it has fewer epochs") {
    other.epochs = 1;
    const std::string text = of_all(shared, 1, usual, other);
    if (rank != 1) CHECK_THAT(text, Catch::Contains("rank 1 "));
  }
  SECTION("a layer that throws on one rank") {
    other.value = cases::backward_throws;
    const std::string text = of_all(shared, 1, usual, other);
    if (rank == 1) CHECK(text == "a layer throws backward");
    else CHECK_THAT(text, Catch::Contains("rank 1 "));
  }
  SECTION("a wrong label on one rank") {
    other.wrong_label = true;
    const std::string text = of_all(shared, 1, usual, other);
    CHECK_THAT(text, Catch::Contains(rank == 1 ? "has the label 7" : "rank 1 "));
  }
  SECTION("another batch on one rank") {
    other.batch = 16;
    CHECK_FALSE(of_all(shared, 1, usual, other).empty());
  }
}
