// SPDX-License-Identifier: Apache-2.0
// Failures inside a step, over processes, with several threads a rank: each of these used to leave a rank's other threads in a
// barrier for ever.
#include "../support/failure_cases.hpp"

#include <skein/mpi.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/server/parameter_server.hpp>

#include <catch2/catch.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/processes.hpp"
#include "../support/temporary_folder.hpp"

namespace cases = failure_cases;
namespace sk = skein;

namespace {
enum class Transport { memory, messages, native };

/// Rank 0 tells the others when it has been told what is wrong; each hears that once, in of_all() at the latest.
bool heard_rank_0 = false;
/// Stands still until then, however late that is on a busy machine.
void wait_for_rank_0() {
  char other = 0;
  if (!heard_rank_0) MPI_Recv(&other, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  heard_rank_0 = true;
}
/// What a function of the world throws on this rank.
template <class Function> std::string of_all(Transport transport, double deadline, Function&& function) {
  sk::CommOptions o;
  o.deadline = deadline;
  o.shared_memory = transport == Transport::memory;
  o.order = transport == Transport::native ? sk::ReductionOrder::native : sk::ReductionOrder::ranks;
  o.check = transport == Transport::messages;
  std::string text;
  {
    sk::MpiComm world{MPI_COMM_WORLD, o};
    text = cases::thrown([&] { function(world); });
    for (int r = 1; world.rank() == 0 && r < world.size(); ++r) MPI_Send("x", 1, MPI_CHAR, r, 7, MPI_COMM_WORLD);
    heard_rank_0 = heard_rank_0 || world.rank() == 0;
  }
  wait_for_rank_0();
  heard_rank_0 = false;
  MPI_Barrier(MPI_COMM_WORLD);
  return text;
}
/// What this rank's fit throws, of ranks of which rank 1 differs.
std::string of_all(Transport transport, double deadline, const cases::Case& usual, const cases::Case& other) {
  return of_all(transport, deadline,
                [&](auto& world) { cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? other : usual); });
}
}  // namespace

TEST_CASE("what fails in a step of one process is named on the others within the deadline, with one thread a rank and several",
          "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1 || size > 3) return;
  const int threads = GENERATE(1, 2, 4);
  const Transport transport = GENERATE(Transport::memory, Transport::messages, Transport::native);
  // Each case waits for its deadline, so that not every transport meets every number of threads: two ranks leave out native
  // with 4 and messages with 1, three ranks try each transport with one number.
  if (size == 2 && ((transport == Transport::native && threads == 4) || (transport == Transport::messages && threads == 1)))
    return;
  if (size == 3 && threads != (transport == Transport::memory ? 2 : transport == Transport::messages ? 4 : 1)) return;
  CAPTURE(threads, static_cast<int>(transport));
  const cases::Case usual{.threads = threads};
  cases::Case other = usual;

  SECTION("a rank that stands still for longer than the deadline") {
    other.stands_still = wait_for_rank_0;
    CHECK_THAT(of_all(transport, 2.5, usual, other), Catch::Contains("rank 1 did not arrive within 2.5 s"));
  }
  SECTION("a rank that has fewer epochs, and another rate") {
    other.epochs = 1;
    other.lr = 0.5f;
    CHECK_THAT(of_all(transport, 2.5, usual, other),
               Catch::Contains("fit: `.epochs` is 2 on rank") && Catch::Contains(", 1 on rank 1 (and so differ `.lr` of Sgd)"));
  }
  SECTION("a layer that throws on one rank") {
    other.value = cases::backward_throws;
    const std::string text = of_all(transport, 2.5, usual, other);
    if (rank == 1) CHECK(text == "a layer throws backward");
    else CHECK_THAT(text, Catch::Contains("rank 1 "));
  }
  SECTION("a wrong label on one rank") {
    other.wrong_label = true;
    const std::string text = of_all(transport, 2.5, usual, other);
    CHECK_THAT(text, Catch::Contains(rank == 1 ? "has the label 7" : "rank 1 "));
  }
  SECTION("another batch on one rank") {
    other.batch = 16;
    CHECK_THAT(of_all(transport, 2.5, usual, other), Catch::Contains("fit: `.batch` is 32 on rank"));
  }
}

TEST_CASE("a call of all ranks that one process makes alone is named, and who has not made it", "[distributed]") {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1 || size > 3) return;
  const Transport transport = GENERATE(Transport::memory, Transport::messages, Transport::native);
  const cases::Alone what = GENERATE(cases::Alone::save_in_fit, cases::Alone::load);
  const int threads = transport == Transport::memory ? 2 : 1;
  CAPTURE(static_cast<int>(transport), static_cast<int>(what));
  int rank = 0;
  const support::TemporaryFolder folder;
  const std::string text = of_all(transport, 2.5, [&](auto& world) {
    rank = world.rank();
    cases::call_alone(sk::parallel::DataParallel{world}, rank, what, threads, folder / "never written");
    if (rank != 0) wait_for_rank_0();  // it is there, and does something else
  });
  if (rank == 0) CHECK_THAT(text, Catch::Contains(cases::alone_text(what, size)));
}

namespace {
/// A second of time in which this rank runs.
void works_for_a_second() {
  for (int i = 0; i < 100; ++i) ::usleep(10000);
}
}  // namespace

TEST_CASE("ranks that were stopped together, for longer than the deadline, go on", "[distributed]") {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) return;
  const Transport transport = GENERATE(Transport::memory, Transport::messages, Transport::native);
  CHECK(of_all(transport, 4, [](sk::MpiComm& world) {
          support::StopsAll stops(world);
          if (world.rank() == 1) works_for_a_second();  // the other waits before and after both stand still
          const int sum = world.all_reduce(world.rank() + 1);
          throw std::runtime_error(std::to_string(sum) + ", " + stops.end());
        }) == "3, let run");
}

TEST_CASE("a parameter server that was stopped with its worker, for longer than the deadline, goes on", "[distributed]") {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) return;
  CHECK(of_all(Transport::memory, 4, [](sk::MpiComm& world) {
          support::StopsAll stops(world);
          cases::Case slow;
          if (world.rank() == 0) slow.stands_still = works_for_a_second;
          cases::fit(sk::parallel::ParameterServer{world}, slow);
          throw std::runtime_error("done, " + stops.end());
        }) == "done, let run");
}

TEST_CASE("an exception that passes through a call that was started ends the others at once", "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1 || size > 3) return;
  const Transport transport = GENERATE(Transport::memory, Transport::messages, Transport::native);
  const bool outlives = GENERATE(true, false);  // the communicator, the catch
  CAPTURE(static_cast<int>(transport), outlives);
  std::vector<float> data(5000);
  const std::string text = of_all(transport, 20, [&](sk::MpiComm& world) {
    std::optional<sk::MpiComm> part;
    if (!outlives) part.emplace(world.split(0));
    sk::MpiComm& all = outlives ? world : *part;
    if (rank == 1) {
      const auto request = all.start_all_reduce(data);
      throw sk::CommError("a fault of rank 1's own");
    }
    for (int i = 0; i < 2; ++i) all.all_reduce(data);
  });
  if (rank == 1) CHECK(text == "a fault of rank 1's own");
  else CHECK_THAT(text, Catch::Contains("rank 1 failed: an exception passed through a call that was under way"));
}

TEST_CASE("an exception of the function that reduces ends the others at once", "[distributed]") {
  struct Checked {
    int operator()(int a, int b) const {
      if (a + b > 100) throw std::overflow_error("a sum beyond 100");
      return a + b;
    }
  };
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1 || size > 3) return;
  const Transport transport = GENERATE(Transport::memory, Transport::messages, Transport::native);
  CAPTURE(static_cast<int>(transport));
  std::vector<int> data(5000, 1);
  data.back() = 60;  // of the last rank's slice
  const std::string text = of_all(transport, 20, [&](sk::MpiComm& world) { world.all_reduce(data, Checked{}); });
  if (rank == size - 1) CHECK(text == "a sum beyond 100");
  else CHECK(text == "rank " + std::to_string(size - 1) + " failed: an exception passed through a call that was under way");
}

TEST_CASE("Reproducible refuses sums in native order", "[distributed]") {
  sk::CommOptions o;
  o.shared_memory = false;
  o.order = sk::ReductionOrder::native;
  sk::MpiComm world{MPI_COMM_WORLD, o};
  const std::string text = cases::thrown([&] {
    sk::parallel::DataParallel{world, sk::parallel::Reproducible<8>{}}.bind(sk::parallel::Replica<float, sk::Cpu>{}).start();
  });
  if (world.size() > 1 && world.size() <= 8)
    CHECK_THAT(text, Catch::Contains("Reproducible<8>: the communicator adds in native order"));
  if (world.size() == 1) CHECK(text.empty());
}
