// SPDX-License-Identifier: Apache-2.0
// GlooComm over processes, through shared memory and through gloo's connections: what MpiComm's tests ask, at every number of
// ranks that this program is started with. MPI starts the ranks, and carries where they meet.
#include <skein/gloo.hpp>
#include <skein/mpi.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "../support/collectives.hpp"
#include "../support/data_parallel_cases.hpp"
#include "../support/failure_cases.hpp"
#include "../support/pipeline_cases.hpp"
#include "../support/progress_cases.hpp"
#include "../support/sharded_cases.hpp"
#include "../support/short_deadline.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
using support::thrown;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

static_assert(sk::Communicator<sk::GlooComm> && sk::AllReduces<sk::GlooComm> && sk::StartsAllReduce<sk::GlooComm>);
static_assert(sk::ReducesToRoot<sk::GlooComm> && sk::ReduceScatters<sk::GlooComm> && sk::Broadcasts<sk::GlooComm>);
static_assert(sk::comm::sound<sk::GlooComm, sk::Cpu>);
static_assert(sk::AllGathers<sk::GlooComm> && sk::AllToAlls<sk::GlooComm> && sk::Sends<sk::GlooComm> && sk::Splits<sk::GlooComm>);

namespace {
sk::GlooComm ranks(bool shared_memory, double deadline = 60) {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::CommOptions o;
  o.shared_memory = shared_memory;
  o.deadline = deadline;
  return sk::GlooComm{sk::ControlComm::over(mpi, 60), o};
}
/// What a function of the ranks throws on this one.
template <class Function> std::string of_all(bool shared_memory, double deadline, Function&& function) {
  std::string text;
  {
    sk::GlooComm world = ranks(shared_memory, deadline);
    text = failure_cases::thrown([&] { function(world); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return text;
}
}  // namespace

TEST_CASE("every collective of gloo equals its serial twin between processes") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared);
  CHECK(world.shares_memory() == (shared && world.size() > 1));
  CHECK(world.node_size() == world.size());
  CHECK(world.node_rank() == world.rank());
  CHECK_NOTHROW(collectives::everything(world, shared ? 150000 : 20000));
}

TEST_CASE("gloo: a rank that waits in another communicator serves this one") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared, 20);
  CHECK_NOTHROW(progress_cases::everything(world));
  if (!shared) return;
  sk::MpiComm mpi{MPI_COMM_WORLD};
  // Of two kinds, and where ranks meet over the coordinator alone.
  CHECK_NOTHROW(progress_cases::collective(world, mpi, 300'000));
  CHECK_NOTHROW(progress_cases::collective(mpi, world, 300'000));
  sk::ControlComm control = sk::ControlComm::over(mpi, 20);
  CHECK_NOTHROW(progress_cases::collective(world, control, 1000));
  CHECK_NOTHROW(progress_cases::message(mpi, control));
}

TEST_CASE("gloo: values of more than a page") {
  struct Large {
    int values[1200] = {};
  };
  sk::GlooComm world = ranks(GENERATE(true, false));
  Large mine;
  mine.values[1199] = world.rank();
  const std::vector<Large> all = world.all_gather(mine);
  CHECK(all.back().values[1199] == world.size() - 1);
}

TEST_CASE("ranks of a split are on the nodes that they were on") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::CommOptions o;
  o.node_size = 2;
  const auto each_on_its_own = [&](auto&& world) {
    const auto part = world.split(world.rank() % 2);
    CHECK(part.node_size() == 1);
    CHECK(!part.shares_memory());
    const auto pair = world.split(world.rank() / 2);
    CHECK(pair.shares_memory() == (pair.size() > 1));
    CHECK(pair.node_rank() == world.rank() % 2);
  };
  each_on_its_own(sk::GlooComm{sk::ControlComm::over(mpi, 60), o});
  each_on_its_own(sk::MpiComm{MPI_COMM_WORLD, o});
}

TEST_CASE("gloo: nodes of so many ranks share no memory with each other, and add in the order of the ranks") {
  sk::MpiComm mpi{MPI_COMM_WORLD};
  sk::CommOptions o;
  o.node_size = 2;
  sk::GlooComm world{sk::ControlComm::over(mpi, 60), o};
  CHECK(world.shares_memory() == (world.size() == 2));
  CHECK(world.node_rank() == world.rank() % 2);
  std::vector<float> a = collectives::values<float>(world.rank(), 40000), b = a;
  world.all_reduce(a, sk::Mean{});
  mpi.all_reduce(b, sk::Mean{});
  CHECK(collectives::same_bits(a, b));
}

TEST_CASE("gloo: a rank that does not arrive within the deadline is named on every rank") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared, 20);
  if (world.size() == 1) return;
  std::vector<float> data(5000);
  const std::string text = thrown([&] {
    world.barrier();
    char other = 0;
    if (world.rank() == 1) MPI_Recv(&other, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // rank 0 has given up
    auto request = world.start_all_reduce(data);
    support::short_deadline_when_all_have_called(world, 0, 1, 0.4);
    request.wait();
  });
  if (world.rank() == 0) MPI_Send("x", 1, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  CHECK_THAT(text, Equals("all_reduce(Sum) of 5000 float (call 1): rank 1 did not arrive within 0.4 s"));
  CHECK_THAT(thrown([&] { world.barrier(); }), Equals(text));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("gloo: a message without a counterpart is named") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared, 0.4);
  if (world.size() == 1) return;
  int x = 0;
  const std::string text = thrown([&] {
    if (world.rank() == 0) world.recv(std::span(&x, 1), 1, 3);
    else MPI_Recv(&x, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // rank 0 has given up
  });
  for (int r = 1; world.rank() == 0 && r < world.size(); ++r) MPI_Send(&x, 1, MPI_INT, r, 7, MPI_COMM_WORLD);
  if (world.rank() == 0) CHECK_THAT(text, Equals("recv from rank 1 (tag 3) on rank 0: no counterpart within 0.4 s"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("gloo: calls that differ are named on every rank") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared, 20);
  if (world.size() < 2) return;
  std::vector<float> data(world.rank() == 1 ? 7 : 8);
  const std::string text = thrown([&] { world.all_reduce(data); });
  CHECK_THAT(text, Contains("collective call 0 differs between ranks: rank") &&
                       Contains("of 8 float; rank 1: all_reduce(Sum) of 7 float"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("gloo: a message of another length is refused") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared, 20);
  if (world.size() == 1) return;
  const std::vector<int> three(3);
  std::vector<int> two(2);
  std::string text;
  if (world.rank() == 0) world.send(three, 1, 1);
  if (world.rank() == 1) text = thrown([&] { world.recv(two, 0, 1); });
  if (world.rank() == 1)
    CHECK_THAT(text, Equals("recv from rank 0 (tag 1): the message is longer than the receiver's span of 8 bytes"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("gloo: a long message leaves while its sender waits in a collective") {
  sk::GlooComm world = ranks(GENERATE(true, false), 20);
  const int n = world.size(), next = (world.rank() + 1) % n;
  if (n == 1) return;
  std::vector<float> out(400000, static_cast<float>(world.rank())), in(out.size());
  auto sent = world.isend(out, next, 5);
  if (world.rank() % 2 == 0) {
    auto came = world.irecv(in, (world.rank() + n - 1) % n, 5);
    CHECK_NOTHROW(world.barrier());
    came.wait();
  } else {
    CHECK_NOTHROW(world.recv(in, (world.rank() + n - 1) % n, 5));
    CHECK_NOTHROW(world.barrier());
  }
  sent.wait();
  CHECK(in.back() == static_cast<float>((world.rank() + n - 1) % n));
}

TEST_CASE("gloo: an exception that leaves the scope of the communicator ends the others", "[distributed]") {
  const bool shared = GENERATE(true, false);
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1) return;
  const std::string text = thrown([&] {
    sk::GlooComm world = ranks(shared, 20);
    if (rank == 1) throw sk::CommError("a fault of rank 1's own");
    world.barrier();
  });
  if (rank == 1) CHECK(text == "a fault of rank 1's own");
  else CHECK_THAT(text, Contains("rank 1 failed: an exception left the scope of its GlooComm"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("gloo: an exception of the function that reduces ends all ranks at once", "[distributed]") {
  struct Checked {
    int operator()(int a, int b) const {
      if (a + b > 100) throw std::overflow_error("a sum beyond 100");
      return a + b;
    }
  };
  const bool shared = GENERATE(true, false);
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size == 1 || size > 3) return;
  std::vector<int> data(5000, 1);
  data.back() = 60;  // of the last rank's slice
  const std::string text = of_all(shared, 4, [&](sk::GlooComm& world) { world.all_reduce(data, Checked{}); });
  const std::string others = "rank " + std::to_string(size - 1) + " failed: an exception passed through";
  CHECK_THAT(text, Contains(rank == size - 1 || !shared ? "a sum beyond 100" : others));
}

TEST_CASE("data-parallel training over gloo agrees with the serial run", "[distributed]") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm world = ranks(shared);
  data_parallel_cases::agrees_with_serial(world);
  data_parallel_cases::accumulates(world);
  data_parallel_cases::local_shards(world);
  data_parallel_cases::keeps_buffers_together(world);
  data_parallel_cases::refuses_other_models(world);
}

TEST_CASE("slices that end at parameters, over gloo", "[distributed]") {
  sk::GlooComm world = ranks(GENERATE(true, false));
  sharded_cases::slices_end_at_parameters(world);
}

TEST_CASE("a pipeline over gloo", "[distributed]") {
  const bool shared = GENERATE(true, false);
  sk::GlooComm everyone = ranks(shared);
  const int wanted = everyone.size() >= 2 ? 2 : 1;
  sk::GlooComm world = everyone.split(everyone.rank() < wanted ? 0 : 1, everyone.rank());
  if (everyone.rank() >= wanted) return;
  pipeline_cases::trains(world);
  if (wanted == 2) pipeline_cases::agrees_with_serial(world, {sk::parallel::PipelineSchedule::interleaved});
}

TEST_CASE("gloo: what fails in a step of one process is named on the others", "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size != 2) return;
  namespace cases = failure_cases;
  const bool shared = GENERATE(true, false);
  const cases::Case usual{.threads = 2};
  cases::Case other = usual;
  const auto fit = [&] {
    return of_all(shared, 2.5,
                  [&](auto& world) { cases::fit(sk::parallel::DataParallel{world}, world.rank() == 1 ? other : usual); });
  };
  SECTION("a rank that stands still for longer than the deadline") {
    other.stands_still = [] { std::this_thread::sleep_for(6s); };
    CHECK_THAT(fit(), Contains("rank 1 did not arrive within 2.5 s"));
  }
  SECTION("a rank that has fewer epochs, and another rate") {
    other.epochs = 1;
    other.lr = 0.5f;
    CHECK_THAT(fit(), Contains("fit: `.epochs` is 2 on rank") && Contains(", 1 on rank 1 (and so differ `.lr` of Sgd)"));
  }
  SECTION("a layer that throws on one rank") {
    other.value = cases::backward_throws;
    const std::string text = fit();
    if (rank == 1) CHECK(text == "a layer throws backward");
    else CHECK_THAT(text, Contains("rank 1 "));
  }
  SECTION("a call that one rank makes alone") {
    const support::TemporaryFolder folder;
    const std::string text = of_all(shared, 2.5, [&](auto& world) {
      cases::call_alone(sk::parallel::DataParallel{world}, world.rank(), cases::Alone::save_in_fit, 1, folder / "never written");
      if (world.rank() != 0) std::this_thread::sleep_for(6s);
    });
    if (rank == 0) CHECK_THAT(text, Contains(cases::alone_text(cases::Alone::save_in_fit, size)));
  }
}
