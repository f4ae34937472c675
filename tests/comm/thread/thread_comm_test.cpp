// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/thread/spawn.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "../../support/collectives.hpp"
#include "../../support/part_cases.hpp"
#include "../../support/rank_check.hpp"

namespace sk = skein;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

static_assert(sk::Communicator<sk::ThreadComm> && sk::AllReduces<sk::ThreadComm> && sk::StartsAllReduce<sk::ThreadComm>);
static_assert(sk::ReducesToRoot<sk::ThreadComm> && sk::ReduceScatters<sk::ThreadComm> && sk::Broadcasts<sk::ThreadComm>);
static_assert(sk::AllGathers<sk::ThreadComm> && sk::AllToAlls<sk::ThreadComm> && sk::Sends<sk::ThreadComm> &&
              sk::Splits<sk::ThreadComm>);
static_assert(!sk::AllReduces<sk::ThreadComm, std::string>);

namespace {
sk::CommOptions within(double seconds) {
  sk::CommOptions o;
  o.deadline = seconds;
  return o;
}
/// What spawn throws; empty where it throws nothing.
template <class F> std::string thrown(int ranks, F&& f, double deadline = 60) {
  try {
    sk::spawn(ranks, f, within(deadline));
  } catch (const sk::CommError& e) { return e.what(); }
  return "";
}
/// Stands still until another rank has given up, however late a busy machine lets it.
void wait_for_failure(sk::ThreadComm& world) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!world.engine().team().failure->happened() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
}
}  // namespace

TEST_CASE("every collective equals its serial twin over threads") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::spawn(
      ranks, [](sk::ThreadComm& world) { collectives::everything(world, 20000); }, within(60)));
}

TEST_CASE("an exception of one rank ends all ranks and names the rank") {
  std::atomic<int> told{0};
  const auto program = [&](sk::ThreadComm& world) {
    if (world.rank() == 1) throw sk::ShapeError("the third layer does not fit");
    try {
      world.barrier();
    } catch (const sk::CommError& e) {
      told += std::string(e.what()) == "rank 1 failed: the third layer does not fit";
      throw;
    }
  };
  CHECK_THAT(thrown(4, program), Equals("rank 1 failed: the third layer does not fit"));
  CHECK(told == 3);

  bool nested = false;
  try {
    sk::spawn(2, program);
  } catch (const sk::CommError& e) {
    try {
      std::rethrow_if_nested(e);
    } catch (const sk::ShapeError&) { nested = true; }
  }
  CHECK(nested);
  CHECK_THAT(thrown(3,
                    [](sk::ThreadComm& world) {
                      double own = 1, other = 0;
                      const int to = (world.rank() + 1) % 3, from = (world.rank() + 2) % 3;
                      auto request = world.irecv(sk::DeviceSpan<double>(&other, 1), from, 1);  // is abandoned
                      if (world.rank() == 1) throw sk::ShapeError("the third layer does not fit");
                      world.send(sk::DeviceSpan<const double>(&own, 1), to, 2);
                      request.wait();
                    }),
             Equals("rank 1 failed: the third layer does not fit"));
}

TEST_CASE("a rank whose communicator cannot be made ends all ranks and is named") {
  for (const int faulty : {0, 1, 2}) {
    const auto failure = std::make_shared<sk::comm::Failure>();
    const auto team = std::make_shared<sk::comm::Team>(3, within(60), 3, failure);
    const auto make = [&](int rank) {
      if (rank == faulty) throw sk::ShapeError("no memory of its own");
      return sk::ThreadComm(team, rank);
    };
    std::atomic<int> ended{0};
    const auto wake = [&](int) {
      ++ended;
      if (failure->happened()) team->wake_everyone();
    };
    const auto wait = [](sk::ThreadComm& world) { world.barrier(); };
    CHECK_THROWS_WITH(sk::comm::run_ranks("spawn", 3, *failure, make, wait, wake),
                      Equals("rank " + std::to_string(faulty) + " failed: no memory of its own"));
    CHECK(ended == 3);
  }
}

TEST_CASE("an exception wakes ranks that wait for a message, in a part, or hold a request") {
  CHECK_THAT(thrown(3,
                    [](sk::ThreadComm& world) {
                      auto part = world.split(0);
                      std::vector<float> data(100000);
                      if (world.rank() == 0) throw std::runtime_error("gone");
                      if (world.rank() == 1) world.recv(data, 0);
                      part.all_reduce(data);
                    }),
             Equals("rank 0 failed: gone"));
  // the buffers of the rank that fails are left before it unwinds
  CHECK_THAT(thrown(2,
                    [](sk::ThreadComm& world) {
                      std::vector<float> data(100000);
                      auto request = world.start_all_reduce(data);
                      if (world.rank() == 0) throw std::runtime_error("while in flight");
                      request.wait();
                    }),
             Contains("rank 0 failed"));
}

TEST_CASE("a rank that does not arrive within the deadline is named") {
  std::atomic<bool> has_called{false};
  const std::string text = thrown(
      3,
      [&](sk::ThreadComm& world) {
        std::vector<double> x(10), first(1);
        auto met = world.start_all_reduce(first);
        while (!met.poll()) std::this_thread::yield();  // however late a rank comes to this one
        if (world.rank() == 1) {
          auto request = world.start_all_reduce(x);
          has_called = true;
          wait_for_failure(world);
          request.wait();
        }
        while (!has_called) std::this_thread::yield();  // rank 2 alone is missing
        if (world.rank() == 2) wait_for_failure(world);
        world.all_reduce(x);
      },
      0.2);
  CHECK_THAT(text, Equals("all_reduce(Sum) of 10 double (call 1): rank 2 did not arrive within 0.2 s"));
  CHECK_THAT(thrown(
                 2,
                 [](sk::ThreadComm& world) {
                   int x = 0;
                   if (world.rank() == 0) world.recv(std::span<int>(&x, 1), 1, 4);
                   else wait_for_failure(world);
                 },
                 0.2),
             Equals("recv from rank 1 (tag 4) on rank 0: no counterpart within 0.2 s"));
}

TEST_CASE("ranks that keep arriving are waited for, however long all of it takes") {
  const auto late = [](sk::ThreadComm& world) {
    std::vector<float> values[12];
    for (auto& v : values) v.assign(10, 1.0f);
    if (world.rank() == 0) {
      std::vector<decltype(world.start_all_reduce(values[0], sk::Sum{}))> requests;
      for (auto& v : values) requests.push_back(world.start_all_reduce(v, sk::Sum{}));
      requests.back().wait();
    } else {
      for (auto& v : values) std::this_thread::sleep_for(300ms), world.all_reduce(v, sk::Sum{});
    }
  };
  CHECK(thrown(2, late, 3).empty());
}

TEST_CASE("a message of another length is over once it was told: it is no message that has come, and ends nobody else") {
  const auto receives = [](sk::ThreadComm& world) {
    int three[3] = {1, 2, 3}, two[2] = {7, 7};
    if (world.rank() == 0) {
      try {
        world.send(sk::DeviceSpan<const int>(three, 3), 1);
      } catch (const sk::CommError&) {}
    } else {
      try {
        auto request = world.irecv(sk::DeviceSpan<int>(two, 2), 0);
        while (!request.poll()) {}
        RANK_CHECK(!"it was taken");
      } catch (const sk::CommError& e) { RANK_CHECK(std::string(e.what()).find("recv on rank 1") != std::string::npos); }
    }
    world.barrier();
    RANK_CHECK(two[0] == 7);
  };
  CHECK(thrown(2, receives) == "");
}

TEST_CASE("a rank that has returned is named at once") {
  const auto before = std::chrono::steady_clock::now();
  CHECK_THAT(thrown(3,
                    [](sk::ThreadComm& world) {
                      if (world.rank() != 1) world.barrier();
                    }),
             Equals("barrier (call 0): rank 1 returned and will not arrive"));
  CHECK_THAT(thrown(3,
                    [](sk::ThreadComm& world) {
                      int x = 0;
                      if (world.rank() == 1) world.recv(std::span<int>(&x, 1), sk::any_rank, 4);
                    }),
             Equals("recv from any rank (tag 4) on rank 1: all other ranks have returned and make no further call"));
  CHECK(std::chrono::steady_clock::now() - before < 20s);  // the deadline is 60 s
}

TEST_CASE("a rank that polls is told of one that has returned") {
  const auto poll = [](auto request) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; !request.poll();) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it polls for ever");
      std::this_thread::sleep_for(100us);
    }
  };
  std::vector<int> x(1);
  CHECK_THAT(thrown(2,
                    [&](sk::ThreadComm& world) {
                      if (world.rank() == 0) poll(world.irecv(x, 1, 4));
                    }),
             Equals("recv from rank 1 (tag 4) on rank 0: that rank has returned and makes no further call"));
  CHECK_THAT(thrown(3,
                    [&](sk::ThreadComm& world) {
                      std::vector<int> own(1);
                      if (world.rank() != 1) poll(world.start_all_reduce(own));
                    }),
             Equals("all_reduce(Sum) of 1 int32 (call 0): rank 1 returned and will not arrive"));
}

TEST_CASE("an exception of the function that reduces ends all ranks: nobody takes a sum of which a slice is missing") {
  struct Checked {
    int operator()(int a, int b) const {
      if (a + b > 100) throw std::overflow_error("a sum beyond 100");
      return a + b;
    }
  };
  std::string told[2], next[2];
  const std::string text = thrown(2, [&](sk::ThreadComm& world) {
    std::vector<int> data(64, 1), more(1);
    data.back() = 60;  // of rank 1's slice
    auto first = world.start_all_reduce(data, Checked{}), second = world.start_all_reduce(more);
    const auto said = [](auto& request) -> std::string {
      try {
        request.wait();
      } catch (const std::exception& e) { return e.what(); }
      return "a sum";
    };
    told[world.rank()] = said(first);
    next[world.rank()] = said(second);
  });
  CHECK(told[1] == "a sum beyond 100");
  for (const std::string& t : {text, told[0], next[0], next[1]}) CHECK_THAT(t, Contains("rank 1 failed: an exception left a"));
}

TEST_CASE("calls that differ are named before memory is touched") {
  CHECK_THAT(
      thrown(3,
             [](sk::ThreadComm& world) {
               std::vector<float> data(world.rank() == 1 ? 7 : 8);
               world.all_reduce(data);
             }),
      Contains(
          "collective call 0 differs between ranks: ranks 0, 2: all_reduce(Sum) of 8 float; rank 1: all_reduce(Sum) of 7 float"));
  CHECK_THAT(thrown(2,
                    [](sk::ThreadComm& world) {
                      std::vector<float> data(8);
                      std::vector<double> other(8);
                      world.barrier();
                      if (world.rank() == 0) world.all_reduce(data, sk::Max{});
                      else world.broadcast(other, 1);
                    }),
             Contains("collective call 1 differs between ranks: rank 0: all_reduce(Max) of 8 float; rank 1: broadcast of 8 "
                      "double from rank 1"));
}

TEST_CASE("wrong arguments say what was wanted") {
  sk::spawn(2, [](sk::ThreadComm& world) {
    std::vector<float> a(3), b(5);
    const auto text = [](auto&& f) {
      try {
        f();
      } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
      return std::string();
    };
    collectives::require(
        text([&] { world.all_gather(a, b); }) == "all_gather: the longer span must hold 2 pieces of 3 values; it holds 5",
        "all_gather");
    collectives::require(text([&] { world.broadcast(a, 2); }) == "broadcast: there is no rank 2 among 2", "broadcast");
    collectives::require(text([&] { world.send(a, 0, -1); }) == "a message's tag must be 0 to 32000; it is -1", "send");
    collectives::require(text([&] { (void)world.split(-1); }) == "split: a colour is 0 or more; it is -1", "split");
  });
  CHECK_THROWS_WITH(sk::spawn(0, [](sk::ThreadComm&) {}), "spawn: there must be at least one rank; asked for 0");
  for (const auto& [deadline, value] : {std::pair(0.0, "0"), std::pair(-2.0, "-2"), std::pair(std::nan(""), "nan")})
    CHECK_THROWS_WITH(sk::spawn(
                          2, [](sk::ThreadComm& world) { world.barrier(); }, within(deadline)),
                      Equals(std::string("CommOptions: a deadline is seconds, more than 0 (infinity for none); it is ") + value));
  CHECK_THROWS_WITH(sk::spawn(2, [](sk::ThreadComm&) {}, {.node_size = -1}), Contains(".node_size is a number of ranks"));
  CHECK_THAT(thrown(2,
                    [](sk::ThreadComm& world) {
                      std::vector<int> a(3), b(2);
                      if (world.rank() == 0) world.send(a, 1);
                      else world.recv(b, 0);
                    }),
             Contains("the message has 12 bytes, the receiver's span 8"));
}

TEST_CASE("a started all_reduce is complete only after everyone has worked on it") {
  sk::spawn(
      2,
      [](sk::ThreadComm& world) {
        std::vector<float> data(10, 1.0f);
        int go = 0;
        if (world.rank() == 0) {
          auto request = world.start_all_reduce(data);
          for (int i = 0; i < 1000; ++i) collectives::require(!request.poll(), "complete although rank 1 has not started");
          world.send(std::span<int>(&go, 1), 1);
          request.wait();
        } else {
          world.recv(std::span<int>(&go, 1), 0);
          world.start_all_reduce(data).wait();
        }
        collectives::require(data[9] == 2.0f, "the sum");
      },
      within(30));
}

TEST_CASE("a short message that has left, and a collective, are waited for a while too") {
  CHECK_NOTHROW(sk::spawn(
      2,
      [](sk::ThreadComm& world) {
        std::vector<int> data(10, 1), out(10, 7);
        if (world.rank() == 0) {
          auto sent = world.isend(out, 1);  // nobody has asked for it yet
          collectives::require(sent.wait_for(20s) && sent.done(), "a message that has left");
          auto sum = world.start_all_reduce(data);
          collectives::require(!sum.wait_for(5ms), "a sum without rank 1");
          world.send(out, 1, 2);
          collectives::require(sum.wait_for(20s), "the sum");
        } else {
          world.recv(out, 0, 2);
          world.all_reduce(data);
          world.recv(out, 0);
        }
        collectives::require(data[9] == 2, "the sum");
      },
      within(30)));
}

TEST_CASE("more calls in flight than the ring holds") {
  sk::spawn(
      3,
      [](sk::ThreadComm& world) {
        std::vector<std::vector<int>> data(200, std::vector<int>(5, world.rank()));
        std::vector<decltype(world.start_all_reduce(data[0]))> requests;
        for (auto& d : data) requests.push_back(world.start_all_reduce(d));
        for (auto& r : requests) r.wait();
        for (auto& d : data) collectives::require(d[4] == 3, "the sum");
      },
      within(30));
}

TEST_CASE("many more ranks than cores crawl forward") {
  CHECK_NOTHROW(sk::spawn(
      16,
      [](sk::ThreadComm& world) {
        for (int i = 0; i < 50; ++i) collectives::require(world.all_reduce(1) == 16, "the sum");
      },
      within(60)));
}

TEST_CASE("the harness notices a wrong result") {
  struct Broken {
    float operator()(float a, float) const { return a; }
  };
  CHECK_FALSE(
      collectives::same_bits(collectives::reduced<float>(3, 10, sk::Sum{}), collectives::reduced<float>(3, 10, Broken{})));
  CHECK_FALSE(collectives::same_bits(collectives::reduced<float>(3, 10, collectives::Weighted{2}),
                                     collectives::reduced<float>(3, 10, collectives::Weighted{3})));
  CHECK_THAT(thrown(2, [](sk::ThreadComm& world) { collectives::require(world.rank() == 0, "wrong on rank 1"); }),
             Equals("rank 1 failed: wrong on rank 1"));
}

TEST_CASE("a rank that fails while others split ends all, and nobody reads what it has left") {
  for (int i = 0; i < 200; ++i) {
    std::string text;
    try {
      sk::spawn(3, [&](sk::ThreadComm& world) {
        if (world.rank() == 2) {
          for (int turn = 0; turn < i % 20; ++turn) std::this_thread::yield();
          throw std::runtime_error("no data here");
        }
        (void)world.split(world.rank() == 0 ? 1 : 0);
      });
    } catch (const sk::CommError& e) { text = e.what(); }
    REQUIRE(text == "rank 2 failed: no data here");
  }
  sk::spawn(4, [](sk::ThreadComm& world) {  // one after the other, of changing colours
    for (int i = 1; i < 50; ++i) {
      auto part = world.split((world.rank() + i) % 2, -world.rank());
      if (part.size() != 2 || part.rank() != (world.rank() < 2 ? 1 : 0)) throw std::runtime_error("a wrong place");
      if (part.all_reduce(world.rank()) != (world.rank() % 2 ? 4 : 2)) throw std::runtime_error("a wrong part");
    }
  });
}

TEST_CASE("in parts of threads ranks are named by their numbers in the whole") {
  const part_cases::Fault fault = GENERATE(from_range(std::begin(part_cases::faults), std::end(part_cases::faults)));
  const bool of_part = GENERATE(false, true);
  std::string told;
  (void)thrown(
      4,
      [&](sk::ThreadComm& world) {
        try {
          part_cases::act(world, fault, of_part);
        } catch (const part_cases::OwnFault&) {
        } catch (const sk::CommError& e) {
          if (world.rank() == 1) told = e.what();
        }
      },
      2.5);
  CAPTURE(static_cast<int>(fault), of_part);
  CHECK_THAT(told, Contains(part_cases::wanted(fault, 4, false, "2.5 s")));
}
