// SPDX-License-Identifier: Apache-2.0
// Messages between processes of one machine, which go through shared memory: what the sender does after it has sent holds nobody
// up, messages match by rank and tag whatever their order and length, and what goes wrong is named within the deadline.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../support/collectives.hpp"
#include "../support/thrown.hpp"
#include "skein/mpi.hpp"

namespace sk = skein;
using support::thrown;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {
sk::MpiComm world_within(double deadline) {
  sk::CommOptions o;
  o.deadline = deadline;
  return sk::MpiComm{MPI_COMM_WORLD, o};
}
}  // namespace

TEST_CASE("a message has left when isend returns: its sender need not come back", "[distributed]") {
  sk::MpiComm world = world_within(20);
  const int n = world.size(), me = world.rank();
  if (n == 1) return;
  std::vector<float> out(75000, static_cast<float>(me)), in(75000);
  world.barrier();
  if (me == 0) {
    auto sent = world.isend(out, 1, 3);
    CHECK(sent.poll());
    std::fill(out.begin(), out.end(), -1.0f);  // the caller's again
    char read = 0;                             // until then it makes no call of the communicator
    MPI_Recv(&read, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (me == 1) {
    CHECK(thrown([&] { world.recv(in, 0, 3); }) == "");
    CHECK(in == std::vector<float>(75000, 0.0f));
    MPI_Send("x", 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
  world.barrier();
}

TEST_CASE("messages of all lengths go both ways at once, and match by tag", "[distributed]") {
  sk::MpiComm world = world_within(60);
  const int n = world.size(), me = world.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const std::vector<std::size_t> lengths{0, 1, 15, 16, 17, 1000, 4096, 70000, 1000003, 9000000};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<char>> out, in;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      out.emplace_back(lengths[k]);
      for (std::size_t i = 0; i < lengths[k]; ++i) out[k][i] = static_cast<char>(i * 7 + k + static_cast<std::size_t>(me));
      in.emplace_back(lengths[k], 'x');
    }
    std::vector<decltype(world.isend(out[0], 0, 0))> sent, came;
    for (std::size_t k = 0; k < lengths.size(); ++k) sent.push_back(world.isend(out[k], next, static_cast<int>(k)));
    for (std::size_t k = lengths.size(); k-- > 0;)  // in the opposite order, by rank or from anyone
      came.push_back(world.irecv(in[k], k % 2 ? before : sk::any_rank, static_cast<int>(k)));
    for (auto& r : came) {
      r.wait();
      CHECK(r.peer() == before);
    }
    for (auto& r : sent) r.wait();
    bool right = true;
    for (std::size_t k = 0; k < lengths.size(); ++k)
      for (std::size_t i = 0; i < lengths[k]; ++i)
        right = right && in[k][i] == static_cast<char>(i * 7 + k + static_cast<std::size_t>(before));
    CHECK(right);
  }
}

TEST_CASE("short messages do not wait for their receiver, however many there are, and arrive in order", "[distributed]") {
  std::vector<int> in(1000);
  int rank = 0, n = 1;
  {
    sk::MpiComm world = world_within(30);
    rank = world.rank(), n = world.size();
    if (n == 1) return;  // one rank shares memory with nobody
    std::vector<int> out(1000);
    for (int k = 0; k < 3000; ++k) {
      out[0] = k;
      world.send(out, (rank + 1) % n, 1);
    }
    bool right = true;
    for (int k = 0; k < 3000; ++k) {
      world.recv(in, (rank + n - 1) % n, 1);
      right = right && in[0] == k;
    }
    CHECK(right);
    // What was sent arrives even if its sender ends its communicator at once.
    if (rank == 0)
      for (int k = 0; k < 3000; ++k) out[0] = k, world.send(out, n - 1, 2);
    if (rank == n - 1) {
      std::this_thread::sleep_for(50ms);
      for (int k = 0; k < 3000; ++k) world.recv(in, 0, 2);
      CHECK(in[0] == 2999);
    }
  }
}

TEST_CASE("messages that nobody answers, or of another length, are named within the deadline", "[distributed]") {
  const int what = GENERATE(range(0, 3));
  sk::MpiComm world = world_within(20);
  const int me = world.rank();
  if (world.size() == 1) return;
  std::vector<float> data(50), longer(60), huge(20000000);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = thrown([&] {
    world.barrier();
    if (me == (what == 0 ? 0 : 1) && what != 1) world.set_deadline(0.6);  // the others find its verdict
    if (me == 1) {
      char given_up = 0;
      if (what == 0) MPI_Recv(&given_up, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (what == 1) world.send(longer, 0, 4);
      if (what == 2) world.isend(huge, 0, 9).wait();
    } else if (me == 0 && what < 2) {
      world.recv(data, 1, 4);
    }
    world.barrier();
    world.barrier();
  });
  if (me == 0 && what == 0) MPI_Send("x", 1, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  const std::string wanted[] = {"recv from rank 1 (tag 4) on rank 0: no counterpart within 0.6 s",
                                "recv from rank 1 (tag 4): the message is longer than the receiver's span of 200 bytes",
                                " within 0.6 s"};
  CAPTURE(what);
  CHECK_THAT(text, Contains(wanted[what]));
  CHECK(std::chrono::steady_clock::now() - begin < 12s);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("who waits for a message of a rank that has left is told at once, and what it has not taken holds nobody up",
          "[distributed]") {
  const int from = GENERATE(1, sk::any_rank);
  sk::MpiComm world = world_within(20);
  const int me = world.rank();
  if (world.size() == 1) return;
  auto part = std::make_unique<sk::MpiComm>(world.split(0));
  const auto begin = std::chrono::steady_clock::now();
  if (me == 0) {
    std::vector<float> data(50);
    const std::string who = from == 1 || world.size() == 2 ? "rank 1" : "ranks 1, 2";
    CHECK_THAT(thrown([&] { part->recv(data, from, 3); }),
               Contains(" (tag 3) on rank 0: " + who) && Contains(" will not arrive"));
  } else {
    part.reset();
  }
  world.barrier();
  part = std::make_unique<sk::MpiComm>(world.split(0));
  std::vector<char> taken_by_nobody(4096);
  for (int k = 0; me == 0 && k < 600; ++k) part->send(taken_by_nobody, 1, 5);  // more than its ring holds
  world.barrier();
  part.reset();
  CHECK(std::chrono::steady_clock::now() - begin < 15s);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("who waits or polls for a message of a rank that has left is told, through shared memory and by MPI's messages",
          "[distributed]") {
  const bool polls = GENERATE(true, false);
  sk::CommOptions o;
  o.deadline = 20;
  o.shared_memory = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, o};
  if (world.size() == 1) return;
  auto part = std::make_unique<sk::MpiComm>(world.split(0));
  part->set_deadline(15);
  const auto begin = std::chrono::steady_clock::now();
  if (world.rank() == 0) {
    std::vector<float> data(50);
    const std::string text = thrown([&] {
      auto request = part->irecv(data, 1, 3);
      while (polls && !request.poll() && std::chrono::steady_clock::now() - begin < 12s) {}
      request.wait();
    });
    CAPTURE(polls, o.shared_memory);
    CHECK_THAT(text, Contains("recv from rank 1 (tag 3) on rank 0: rank 1 returned and will not arrive"));
    CHECK(std::chrono::steady_clock::now() - begin < 12s);
  } else {
    part.reset();
  }
  world.barrier();
}

TEST_CASE("a communicator that has failed writes nothing that is still on its way into what its receives were given",
          "[distributed]") {
  sk::MpiComm world = world_within(20);
  if (world.size() == 1) return;
  std::vector<int> first(1000), second(1000);
  if (world.rank() == 0) {
    auto a = world.irecv(first, 1, 1), b = world.irecv(second, 1, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(thrown([&] { world.fail("a fault"); }) == "a fault");
    std::fill(first.begin(), first.end(), 7);  // as whoever has this memory next
    CHECK(thrown([&] { b.wait(); }) == "a fault");
    CHECK(std::count(first.begin(), first.end(), 7) == 1000);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world.rank() == 1) world.send(first, 0, 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
