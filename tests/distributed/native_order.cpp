// SPDX-License-Identifier: Apache-2.0
// Reductions in native order over processes: their values, the same bits on all ranks, and that what goes wrong is named within
// the deadline although MPI neither compares calls nor cancels them.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "../support/collectives.hpp"
#include "../support/larger.hpp"
#include "../support/sanitizers.hpp"
#include "../support/short_deadline.hpp"
#include "../support/thrown.hpp"
#include "skein/comm/mpi/same_options.hpp"
#include "skein/device/memory.hpp"
#include "skein/mpi.hpp"

namespace sk = skein;
using support::thrown;
using Catch::Matchers::Contains;

namespace {
/// `node`: so many ranks count as one node, and share memory; 0: none do.
/// `eager`: bytes of a message; 0: whole ones, and MPI's call in place of the ring.
sk::CommOptions native(double deadline = 60, int node = 0, std::size_t eager = 3000) {
  sk::CommOptions o;
  o.shared_memory = node > 0;  // ranks of one machine would share it
  o.node_size = node;
  o.level_bytes = 400;
  o.order = sk::ReductionOrder::native;
  o.deadline = deadline;
  o.check = false;
  o.message = 60000;  // so that long ones go in pieces
  o.doubling_bytes = 1000;
  o.halving_bytes = 5000;
  o.eager_bytes = eager;
  return o;
}
double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

/// Memory of this process, in kB.
long resident() {
  long all = 0, here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * sysconf(_SC_PAGESIZE) / 1024;
}

/// Against the serial sum, up to one rounding a rank; the same bits on all ranks and in a second run.
template <class T, class Op> void against_serial(sk::MpiComm& world, std::size_t n, Op op, double epsilon) {
  const int ranks = world.size();
  const auto value = [](int rank, std::size_t i) {
    return static_cast<T>(static_cast<float>((i * 7 + rank * 13) % 101) * 0.37f - 15);
  };
  std::vector<T> data(n), again(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = again[i] = value(world.rank(), i);
  auto started = world.start_all_reduce(again, op);
  world.all_reduce(data, op);
  started.wait();
  CHECK(collectives::same_bits(data, again));
  sk::Arena<T> arena(n);  // calls work in it directly
  for (std::size_t i = 0; i < n; ++i) arena.data()[i] = value(world.rank(), i);
  world.all_reduce(arena.span(), op);
  CHECK(collectives::same_bits(data, std::vector<T>(arena.data(), arena.data() + n)));
  std::vector<T> first = data;
  world.broadcast(first, 0);
  CHECK(collectives::same_bits(data, first));
  std::vector<T> to_one(n);
  for (std::size_t i = 0; i < n; ++i) to_one[i] = value(world.rank(), i);
  world.reduce(to_one, op, ranks - 1);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = static_cast<double>(value(0, i));
    for (int r = 1; r < ranks; ++r) {
      const double x = static_cast<double>(value(r, i));
      sum = std::is_same_v<Op, sk::Max> ? std::max(sum, x) : std::is_same_v<Op, sk::Min> ? std::min(sum, x) : sum + x;
    }
    if (std::is_same_v<Op, sk::Mean>) sum = std::is_integral_v<T> ? std::trunc(sum / ranks) : sum / ranks;
    worst = support::larger(worst, static_cast<double>(data[i]) - sum);
    if (world.rank() == ranks - 1) worst = support::larger(worst, static_cast<double>(to_one[i]) - sum);
    else if (!(to_one[i] == value(world.rank(), i))) worst = 1e9;  // those that receive nothing keep what they have
  }
  CAPTURE(n, ranks);
  CHECK(worst <= epsilon * 25 * ranks * ranks);
}
}  // namespace

TEST_CASE("reductions in native order equal the serial ones up to rounding, and are the same bits on all ranks",
          "[distributed]") {
  const int node = GENERATE(0, 2, 3);
  const std::size_t eager = node ? 3000 : GENERATE(std::size_t{0}, std::size_t{3000});
  sk::MpiComm world{MPI_COMM_WORLD, native(60, node, eager)};
  const bool native_order = world.size() > (node ? node : 1);
  CHECK(world.order() == (native_order ? sk::ReductionOrder::native : sk::ReductionOrder::ranks));
  CHECK((!native_order || !world.shares_memory()));
  // none, one, doubling, halving, a ring or MPI's, the same in pieces
  for (const std::size_t n : {0u, 1u, 37u, 250u, 251u, 4000u, 9000u, 70001u}) {
    against_serial<float>(world, n, sk::Sum{}, 1.2e-7);
    against_serial<double>(world, n, sk::Mean{}, 2.3e-16);
    against_serial<float>(world, n, sk::Max{}, 0);
    against_serial<sk::bf16>(world, n, sk::Mean{}, 8e-3);
  }
  for (const std::size_t n : {11u, 3000u, 40000u}) {
    against_serial<std::int32_t>(world, n, sk::Sum{}, 0);
    against_serial<std::int64_t>(world, n, sk::Mean{}, 0);
    against_serial<std::int8_t>(world, n, sk::Min{}, 0);
    against_serial<sk::fp16>(world, n, sk::Sum{}, 1e-3);
  }
}

TEST_CASE("a NaN of any rank wins in native order", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, native()};
  for (const std::size_t n : {3u, 2000u, 30000u}) {
    std::vector<float> data(n, static_cast<float>(world.rank()));
    if (world.rank() == world.size() - 1) data[n / 2] = std::numeric_limits<float>::quiet_NaN();
    world.all_reduce(data, sk::Max{});
    CHECK(std::isnan(data[n / 2]));
    CHECK(data[0] == static_cast<float>(world.size() - 1));
  }
}

TEST_CASE("functions of the user's and all that moves values go in the order of the ranks, whatever the order", "[distributed]") {
  const bool check = GENERATE(false, true);
  sk::CommOptions o = native();
  o.check = check;
  sk::MpiComm world{MPI_COMM_WORLD, o};
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{20000}}) {
    CHECK_NOTHROW(collectives::reductions<float>(world, n, collectives::Weighted{3}));
    CHECK_NOTHROW(collectives::movements<float>(world, n));
  }
  CHECK_NOTHROW(collectives::conveniences(world));
}

TEST_CASE("the order is that of the ranks on one node, native on several, and that of the ranks where shared memory serves",
          "[distributed]") {
  sk::CommOptions o = native();
  o.order = sk::ReductionOrder::automatic;
  CHECK(sk::MpiComm{MPI_COMM_WORLD, o}.order() == sk::ReductionOrder::ranks);
  for (const int node : {1, 2}) {  // several nodes, where there are ranks enough
    sk::CommOptions nodes = native(60, node);
    nodes.order = sk::ReductionOrder::automatic;
    const sk::MpiComm over_nodes{MPI_COMM_WORLD, nodes};
    CHECK(over_nodes.order() == (over_nodes.size() > node ? sk::ReductionOrder::native : sk::ReductionOrder::ranks));
  }
  o.order = sk::ReductionOrder::native;
  o.shared_memory = true;
  sk::MpiComm world{MPI_COMM_WORLD, o};
  CHECK((!world.shares_memory() || world.order() == sk::ReductionOrder::ranks));
  o.order = world.rank() == 1 ? sk::ReductionOrder::ranks : sk::ReductionOrder::native;
  if (world.size() > 1)
    CHECK_THAT(thrown([&] { sk::MpiComm{MPI_COMM_WORLD, o}; }), Contains("order of CommOptions differs between"));
}

TEST_CASE("options by which ranks would cut messages differently are refused, and one rank's check is everybody's",
          "[distributed]") {
  const sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() == 1) return;
  const bool odd = world.rank() == 1;
  const auto refused = [&](sk::CommOptions o) { return thrown([&] { sk::MpiComm{MPI_COMM_WORLD, o}; }); };
  sk::CommOptions o = native();
  o.eager_bytes = odd ? 3000 : 60000;
  CHECK_THAT(refused(o), Contains(".eager_bytes of CommOptions differs between ranks: it is 60000 on rank") &&
                             Contains(", 3000 on rank 1. Give all ranks the same options"));
  o = native();
  o.doubling_bytes = odd ? 0 : 1 << 15;  // each took another algorithm, and the sums were wrong
  CHECK_THAT(refused(o), Contains(".doubling_bytes of CommOptions differs"));
  o = native();
  o.message = odd ? 4096 : 1 << 20;
  CHECK_THAT(refused(o), Contains(".message of CommOptions differs"));
  o = native();
  o.node_size = odd ? 2 : 0;
  CHECK_THAT(refused(o), Contains(".node_size of CommOptions differs"));

  o = native();
  o.order = sk::ReductionOrder::ranks;
  o.check = odd;
  sk::MpiComm checked{MPI_COMM_WORLD, o};
  CHECK(checked.all_reduce(1.0f) == static_cast<float>(world.size()));
}

TEST_CASE("communicators that follow each other leave no memory behind", "[distributed]") {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || SKEIN_TEST_ASAN) return;  // whose allocator keeps what is released
  long before = 0;
  for (int i = 0; i < 120; ++i) {
    if (i == 20) before = resident();
    sk::MpiComm world{MPI_COMM_WORLD, native()};
    CHECK(world.all_reduce(1) == 2);  // each tells the next what it has called, which that need not have read
  }
  CHECK(resident() - before < 250);  // 5 kB each were never released
}

TEST_CASE("a rank that stands still under native order is named on every rank within the deadline", "[distributed]") {
  const int node = GENERATE(0, 2);
  sk::MpiComm world{MPI_COMM_WORLD, native(20, node)};
  if (world.size() <= (node ? node : 1)) return;
  const std::size_t n = GENERATE(20u, 2000u, 400000u);
  std::vector<float> data(n);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = thrown([&] {
    world.barrier();
    if (world.rank() == 1) MPI_Barrier(MPI_COMM_WORLD);  // stands still until all others have given up
    auto request = world.start_all_reduce(data);
    support::short_deadline_when_all_have_called(world, 0, 1, 0.5);
    request.wait();  // complete on the rank that came late, where the messages of the others are there already
    world.barrier();
  });
  const double seconds = seconds_since(begin);
  if (world.rank() != 1) MPI_Barrier(MPI_COMM_WORLD);
  CHECK(text == "all_reduce(Sum) of " + std::to_string(n) + " float (call 1): rank 1 did not arrive within 0.5 s");
  if (world.rank() != 1) CHECK(seconds < 12);  // 1.6 on an idle machine
  data.assign(n, 7.0f);                        // the started call cannot be cancelled, and must not write here any more
  CHECK_THAT(thrown([&] { world.barrier(); }), Contains("rank 1 did not arrive"));
  MPI_Barrier(MPI_COMM_WORLD);  // moves whatever MPI still has to move
  sk::MpiComm next{MPI_COMM_WORLD, native()};
  std::vector<float> other(n, 1.0f);
  next.all_reduce(other);
  CHECK(other[n / 2] == static_cast<float>(world.size()));
  CHECK(data == std::vector<float>(n, 7.0f));
}

TEST_CASE("an arena in which a call failed stays until the process ends", "[distributed]") {
  const int node = GENERATE(0, 2);
  sk::MpiComm world{MPI_COMM_WORLD, native(20, node)};
  if (world.size() <= (node ? node : 1)) return;
  const std::size_t n = GENERATE(2000u, 14000u);  // a table's, and MPI's
  const float* p = nullptr;
  std::string text;
  {
    sk::Arena<float> data(n);
    p = data.data();
    MPI_Barrier(MPI_COMM_WORLD);
    text = thrown([&] {
      if (world.rank() == 0) MPI_Barrier(MPI_COMM_WORLD);
      auto request = world.start_all_reduce(data.span());
      support::short_deadline_when_all_have_called(world, 1, 0, 0.5);
      request.wait();
      world.barrier();
    });
    if (world.rank() != 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK_THAT(text, Contains("rank 0 did not arrive within 0.5 s"));
  if (world.rank() > (node ? node - 1 : 0))
    CHECK(sk::KeptMemory::holds(p, n * sizeof(float)));  // those of its node have not begun with MPI
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("calls that differ under native order are named within the deadline, without a message a call", "[distributed]") {
  const int what = GENERATE(range(0, 6));
  const int node = GENERATE(0, 2);
  sk::MpiComm world{MPI_COMM_WORLD, native(3, node)};
  if (world.size() <= (node ? node : 1)) return;
  const bool other = world.rank() == 1;
  std::vector<float> data(what == 1 ? 3000 : what == 2 ? 50000 : 8, 1.0f);
  std::vector<std::int32_t> whole(8, 1);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = thrown([&] {
    world.barrier();
    if (other && what < 3) data.pop_back();
    if (other && what == 3) world.all_reduce(data, sk::Max{});  // as many bytes: MPI has nothing to object
    else if (other && what == 4) world.broadcast(data, 1);
    else if (other && what == 5) world.all_reduce(whole);
    else world.all_reduce(data);
    while (true) world.barrier();
  });
  CAPTURE(what);
  CHECK_THAT(text, Contains("collective call 1 differs between ranks: ") && Contains("rank 1: "));
  CHECK(seconds_since(begin) < 12);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a call that differs among thousands is named, although nobody waits and MPI has nothing to object", "[distributed]") {
  const int node = GENERATE(0, 2), before = GENERATE(100, 5000);
  sk::MpiComm world{MPI_COMM_WORLD, native(3, node)};
  if (world.size() <= (node ? node : 1)) return;
  std::vector<float> data(8, 1.0f);
  const std::string text = thrown([&] {
    for (int i = 0; i < before; ++i) world.barrier();
    if (world.rank() == 1) world.all_reduce(data, sk::Max{});
    else world.all_reduce(data);
    while (true) world.barrier();
  });
  CHECK_THAT(text, Contains("collective call " + std::to_string(before) + " differs between ranks: ") &&
                       Contains("rank 1: all_reduce(Max) of 8 float"));
  MPI_Barrier(MPI_COMM_WORLD);
}
