// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of comm. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/skein.hpp>

namespace sk = skein;

struct Furthest {  // the value that is furthest from zero
  float operator()(float a, float b) const { return a * a >= b * b ? a : b; }
};

TEST_CASE("collectives and messages", "[guide]") {
  std::vector<float> sums(3), tokens(3), extremes(3);
  std::vector<int> parts(3);
  // [quote collectives]
  sk::spawn(3, [&](sk::ThreadComm& world) {  // rank 0 is the calling thread
    const int rank = world.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    std::vector<float> values(1000, static_cast<float>(rank + 1));
    world.all_reduce(values, sk::Sum{});  // 6 everywhere, the same bits on every rank

    std::vector<float> token{static_cast<float>(rank)}, came(1);
    auto sent = world.isend(token, next, 0);  // round a ring
    world.recv(came, before, 0);
    sent.wait();

    auto request = world.start_all_reduce(token, Furthest{});  // a functor of one's own
    while (!request.poll()) {}                                 // compute here; it moves inside poll and wait only
    sk::ThreadComm half = world.split(rank % 2);
    const auto r = static_cast<std::size_t>(rank);  // not quoted
    sums[r] = values[999];                          // not quoted
    tokens[r] = came[0];                            // not quoted
    extremes[r] = token[0];                         // not quoted
    parts[r] = half.size();                         // not quoted
  });
  // [end]
  CHECK(sums == std::vector<float>{6, 6, 6});
  CHECK(tokens == std::vector<float>{2, 0, 1});
  CHECK(extremes == std::vector<float>{2, 2, 2});
  CHECK(parts == std::vector<int>{2, 1, 2});

  std::string what;
  // [quote failure]
  try {
    sk::spawn(2, [](sk::ThreadComm& world) {
      if (world.rank() == 1) throw sk::ArgumentError("no data on this rank");
      world.barrier();  // rank 0 waits for a rank that has failed
    });
  } catch (const sk::CommError& e) {
    what = e.what();  // rank 1 failed: no data on this rank
  }
  // [end]
  CHECK(what == "rank 1 failed: no data on this rank");
}
