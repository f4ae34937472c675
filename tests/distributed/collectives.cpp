// SPDX-License-Identifier: Apache-2.0
// Every collective over real processes, through shared memory and through messages, against its serial twin, bit for bit.
// Run under mpirun on 1, 2, 3, 4 and 7 ranks with the main of tests/support/mpi_main.cpp; every rank runs every case.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>

#include "../support/collectives.hpp"
#include "../support/processes.hpp"
#include "../support/short_deadline.hpp"
#include "../support/thrown.hpp"
#include "skein/device/memory.hpp"
#include "skein/mpi.hpp"

namespace sk = skein;
using support::thrown;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Catch::Matchers::Matches;

static_assert(sk::Communicator<sk::MpiComm> && sk::AllReduces<sk::MpiComm> && sk::StartsAllReduce<sk::MpiComm>);
static_assert(sk::ReducesToRoot<sk::MpiComm> && sk::ReduceScatters<sk::MpiComm> && sk::Broadcasts<sk::MpiComm>);
static_assert(sk::comm::sound<sk::MpiComm, sk::Cpu>);
static_assert(sk::AllGathers<sk::MpiComm> && sk::AllToAlls<sk::MpiComm> && sk::Sends<sk::MpiComm> && sk::Splits<sk::MpiComm>);

namespace {
sk::CommOptions options(bool shared_memory, double deadline = 60, bool check = false) {
  sk::CommOptions o;
  o.shared_memory = shared_memory;
  o.deadline = deadline;
  o.check = check;
  o.message = 8192;  // so that the tests see messages in pieces
  return o;
}
}  // namespace

TEST_CASE("every collective equals its serial twin between processes") {
  const bool shared = GENERATE(true, false), check = GENERATE(false, true);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 60, check)};
  CHECK(world.shares_memory() == (shared && world.size() > 1));
  CHECK_NOTHROW(collectives::everything(world, shared ? 150000 : 20000));
}

TEST_CASE("a long message leaves while its sender waits in a collective") {
  const bool shared = GENERATE(true, false);
  sk::CommOptions whole = options(shared, 20);
  whole.message = std::size_t{1} << 28;  // one piece: MPI itself moves it, inside its calls
  sk::MpiComm world{MPI_COMM_WORLD, whole};
  const int n = world.size(), next = (world.rank() + 1) % n;
  std::vector<float> out(400000, static_cast<float>(world.rank())), in(out.size());
  if (world.rank() % 2 == 0 && n > 1) {  // even ranks come to the barrier first, their messages not yet gone
    auto sent = world.isend(out, next, 5);
    auto came = world.irecv(in, (world.rank() + n - 1) % n, 5);
    CHECK_NOTHROW(world.barrier());
    sent.wait();
    came.wait();
  } else if (n > 1) {
    auto sent = world.isend(out, next, 5);
    CHECK_NOTHROW(world.recv(in, (world.rank() + n - 1) % n, 5));
    sent.wait();
    CHECK_NOTHROW(world.barrier());
  }
  if (n > 1) CHECK(in.back() == static_cast<float>((world.rank() + n - 1) % n));
}

TEST_CASE("messages of one pair and tag that are under way together arrive in order, however many pieces they have") {
  const bool shared = GENERATE(true, false);
  const int from = GENERATE(0, sk::any_rank);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 20)};
  if (world.size() == 1) return;
  const std::size_t counts[] = {10000, 5, 30000, 2048, 7000};
  std::vector<std::vector<int>> data;
  for (const std::size_t n : counts) data.emplace_back(n, world.rank() == 0 ? static_cast<int>(n) : 0);
  std::vector<decltype(world.isend(data[0], 0, 4))> calls;
  for (std::vector<int>& d : data) {
    if (world.rank() == 0) calls.push_back(world.isend(d, 1, 4));
    if (world.rank() == 1) calls.push_back(world.irecv(d, from, 4));
  }
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) CHECK_NOTHROW(call->wait());  // the last one first
  for (std::size_t k = 0; k < data.size() && world.rank() < 2; ++k)
    CHECK(std::count(data[k].begin(), data[k].end(), static_cast<int>(counts[k])) == static_cast<long>(counts[k]));
  for (std::vector<int>& d : data) {
    if (world.rank() == 0) world.send(d, 1);
    if (world.rank() == 1) CHECK(world.recv(d, from) == 0);
  }
  world.barrier();
}

TEST_CASE("a rank that does not arrive within the deadline is named on every rank") {
  const bool shared = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 20)};
  if (world.size() == 1) return;
  std::optional<sk::Arena<float>> data(5000);
  const float* const memory = data->data();
  const std::string text = thrown([&] {
    world.barrier();
    char other = 0;
    if (world.rank() == 1) MPI_Recv(&other, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // rank 0 has given up
    auto request = world.start_all_reduce(data->span());
    support::short_deadline_when_all_have_called(world, 0, 1, 0.4);
    request.wait();
  });
  if (world.rank() == 0) MPI_Send("x", 1, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  // The rank that came late finds the verdict of the others.
  CHECK_THAT(text, Equals("all_reduce(Sum) of 5000 float (call 1): rank 1 did not arrive within 0.4 s"));
  CHECK_THAT(thrown([&] { world.barrier(); }), Equals(text));
  data.reset();  // MPI may still read what rank 0 has begun to send
  if (world.rank() == 0) CHECK(sk::KeptMemory::holds(memory, 20000) == !shared);
  MPI_Barrier(MPI_COMM_WORLD);
}

namespace {
/// What rank 0 of three hears of rank 1, which does not come, while rank 2 stands still for half a second when it is asked.
std::string heard_while_one_stands_still() {
  sk::MpiComm world{MPI_COMM_WORLD, options(false, 20)};
  const std::vector<pid_t> processes = world.all_gather(::getpid());
  std::vector<float> data(50);
  std::optional<support::Child> lets_run;
  char other = 0;
  const std::string text = thrown([&] {
    if (world.rank() == 1) MPI_Recv(&other, 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // rank 0 has given up
    auto request = world.start_all_reduce(data);
    support::short_deadline_when_all_have_called(world, 0, 1, 0.5);
    if (world.rank() == 0) {
      ::kill(processes[2], SIGSTOP);
      lets_run = support::start_process([&] { return ::usleep(950000), ::kill(processes[2], SIGCONT), std::string("let run"); });
    }
    request.wait();
  });
  if (world.rank() == 0) MPI_Send("x", 1, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  if (lets_run) CHECK(support::wait_for(*lets_run) == "let run");
  MPI_Barrier(MPI_COMM_WORLD);
  return text;
}
}  // namespace

TEST_CASE("a rank that waits too, and stands still for half a second when it is asked, is not said to be missing") {
  int ranks = 0, right = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string text;
  for (int attempt = 0; ranks == 3 && attempt < 5 && !right; ++attempt) {  // a busy machine may let it stand for longer
    text = heard_while_one_stands_still();
    right = text == "all_reduce(Sum) of 50 float (call 1): rank 1 did not arrive within 0.5 s";
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  INFO("rank 0 may have heard: " << text);
  CHECK((right || ranks != 3));
}

TEST_CASE("a rank that has left is named at once by who waits or polls in a collective that it has not called, and in no other") {
  const bool shared = GENERATE(true, false), polls = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 20)};
  if (world.size() == 1) return;
  std::optional<sk::MpiComm> part = world.split(0);
  std::vector<float> data(50, static_cast<float>(world.rank()));
  const auto begin = std::chrono::steady_clock::now();
  if (world.rank() == 1) {
    part->broadcast(data, 1);
    part.reset();
  } else {
    std::this_thread::sleep_for(600ms);
    const std::string text = thrown([&] {
      part->broadcast(data, 1);  // comes, although its root has left
      auto request = part->start_all_reduce(data);
      while (polls && !request.poll() && std::chrono::steady_clock::now() - begin < 12s) {}
      request.wait();
    });
    CAPTURE(shared, polls);
    CHECK_THAT(text, Equals("all_reduce(Sum) of 50 float (call 1): rank 1 returned and will not arrive"));
    CHECK(std::chrono::steady_clock::now() - begin < 12s);  // the deadline is 20 s
  }
  world.barrier();
}

TEST_CASE("calls that differ are named on every rank") {
  const bool shared = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 20, true)};
  if (world.size() < 2) return;
  std::vector<float> data(world.rank() == 1 ? 7 : 8);
  const std::string text = thrown([&] { world.all_reduce(data); });
  // Messages compare two ranks at a time: which rank finds that rank 1 differs is not said.
  CHECK_THAT(text, Matches("collective call 0 differs between ranks: "
                           "(ranks? 0[^;]*: all_reduce\\(Sum\\) of 8 float; rank 1: all_reduce\\(Sum\\) of 7 float|"
                           "rank 1: all_reduce\\(Sum\\) of 7 float; rank [2-9]: all_reduce\\(Sum\\) of 8 float)\\. .*"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a deadline that is no time is refused") {
  for (const double deadline : {0.0, -1.0, std::nan("")}) {
    CHECK_THAT(thrown<sk::ArgumentError>([&] {
                 sk::MpiComm{MPI_COMM_SELF, options(true, deadline)};
               }),
               Contains("CommOptions: a deadline is"));
    sk::MpiComm world{MPI_COMM_SELF};
    CHECK_THAT(thrown<sk::ArgumentError>([&] { world.set_deadline(deadline); }),
               Contains("set_deadline: a deadline is seconds, more than 0"));
  }
}

TEST_CASE("a message of another length is refused") {
  const std::vector<int> three(3);
  std::vector<int> two(2), four(4);
  sk::MpiComm one{MPI_COMM_SELF, options(true, 20)}, another{MPI_COMM_SELF, options(true, 20)};
  one.send(three, 0, 1);
  CHECK_THAT(thrown([&] { one.recv(two, 0, 1); }),
             Equals("recv from rank 0 (tag 1): the message is longer than the receiver's span of 8 bytes"));
  another.send(three, 0, 2);
  CHECK_THAT(thrown([&] { another.recv(four, 0, 2); }),
             Equals("recv from rank 0 (tag 2): the message has 12 bytes, the receiver's span 16"));
}

TEST_CASE("a message that ends between two pieces of the receiver's span, or goes on behind them, is refused") {
  struct Lengths {
    std::size_t message, span;
    std::string wrong;
  };
  const Lengths all[] = {{8192, 8192, ""},
                         {16384, 16384, ""},
                         {16384, 8192, "the message is longer than the receiver's span of 8192 bytes"},
                         {8193, 8192, "the message is longer than the receiver's span of 8192 bytes"},
                         {8192, 16384, "the message has 8192 bytes, the receiver's span 16384"}};
  for (const Lengths& l : all) {
    sk::MpiComm world{MPI_COMM_WORLD, options(false, 3)};
    if (world.size() == 1) return;
    static std::vector<char> out, after(8192, 'b');  // MPI may read what has not left until the end
    out.assign(l.message, 'a');
    std::vector<char> in(l.span), next(8192);
    const std::string text = thrown([&] {
      if (world.rank() == 0) world.send(out, 1, 1), world.barrier(), world.send(after, 1, 1);
      if (world.rank() == 1) world.recv(in, 0, 1), world.barrier(), world.recv(next, 0, 1);
      if (world.rank() > 1) world.barrier();
      world.barrier();
    });
    CAPTURE(l.message, l.span);
    CHECK_THAT(text, Equals(l.wrong.empty() ? "" : "recv from rank 0 (tag 1): " + l.wrong));
    if (l.wrong.empty() && world.rank() == 1) CHECK((in == out && next == after));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("a poll that finds a message of another length ends all ranks") {
  const bool shared = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 20)};
  if (world.size() == 1) return;
  const std::vector<int> three(3);
  std::vector<int> two(2);
  const std::string text = thrown([&] {
    if (world.rank() == 0) world.send(three, 1, 1);
    if (world.rank() == 1)
      for (auto request = world.irecv(two, 0, 1); !request.poll();) std::this_thread::sleep_for(1ms);
    world.barrier();
  });
  CHECK_THAT(text, Equals("recv from rank 0 (tag 1): the message is longer than the receiver's span of 8 bytes"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what comes after a communicator has failed is written nowhere") {
  sk::MpiComm world{MPI_COMM_WORLD, options(false, 0.4)};
  const int rank = world.rank(), n = world.size();
  if (n == 1) return;
  const int call = GENERATE(range(0, 3));
  CAPTURE(call);
  constexpr std::size_t count = 1000;
  constexpr int bytes = count * sizeof(int);
  std::vector<int> data(count * static_cast<std::size_t>(n), 1), late(count, 3);
  std::string text;
  if (rank != 1)
    text = thrown([&] {
      if (call == 0) world.recv(std::span(data).first(count), 1, 3);
      if (call == 1) world.all_gather(late, data);
      if (call == 2) world.broadcast(std::span(data).first(count), 1);
    });
  if (rank != 1) CHECK_THAT(text, Contains(call == 0 ? "no counterpart within" : "rank 1 did not arrive within"));
  std::fill(data.begin(), data.end(), 7);  // as whoever has this memory next
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {  // comes late, by MPI's own calls, as it does while it has not heard of the failure
    std::vector<MPI_Request> sent(call == 2 ? 1 : static_cast<std::size_t>(n), MPI_REQUEST_NULL);
    constexpr int transport = sk::comm::MessageTransport::tag;
    if (call == 2) MPI_Ibcast(late.data(), bytes, MPI_BYTE, 1, world.native(), &sent[0]);
    for (int r = 0; call < 2 && r < n; ++r)
      if (r != 1)
        MPI_Isend(late.data(), bytes, MPI_BYTE, r, call == 0 ? 3 : transport, world.native(), &sent[static_cast<std::size_t>(r)]);
    MPI_Waitall(static_cast<int>(sent.size()), sent.data(), MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::this_thread::sleep_for(50ms);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(std::count(data.begin(), data.end(), 7) == static_cast<std::ptrdiff_t>(data.size()));
}

TEST_CASE("the same bits over threads, shared memory and messages") {
  sk::MpiComm near{MPI_COMM_WORLD, options(true)}, far{MPI_COMM_WORLD, options(false)};
  std::vector<float> a = collectives::values<float>(near.rank(), 40000), b = a, c;
  near.all_reduce(a, sk::Mean{});
  far.all_reduce(b, sk::Mean{});
  sk::spawn(near.size(), [&](sk::ThreadComm& threads) {
    std::vector<float> mine = collectives::values<float>(threads.rank(), 40000);
    threads.all_reduce(mine, sk::Mean{});
    if (threads.rank() == 0) c = mine;
  });
  CHECK(collectives::same_bits(a, b));
  CHECK(collectives::same_bits(a, c));
}

TEST_CASE("a started all_reduce moves while a rank waits for a message") {
  const bool shared = GENERATE(true, false);
  sk::MpiComm world{MPI_COMM_WORLD, options(shared, 30)};
  if (world.size() < 2) return;
  std::vector<float> data(300000, 1.0f);
  int token = 0;
  auto request = world.start_all_reduce(data);
  if (world.rank() == 0) {
    request.wait();
    for (int r = 1; r < world.size(); ++r) world.send(std::span<int>(&token, 1), r);
  } else {
    world.recv(std::span<int>(&token, 1), 0);  // comes only once rank 0 has its sums, which want this rank's part
    request.wait();                            // its own sums may take another message
  }
  CHECK(data[299999] == static_cast<float>(world.size()));
}
