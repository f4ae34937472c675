// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of all-reduce algorithms, their plan, and compression. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/exchange.hpp>
#include <skein/comm/compress/half_wire.hpp>
#include <skein/comm/compress/top_k.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/plan/collective_check.hpp>
#include <skein/plan/level_fit.hpp>

namespace sk = skein;

// [quote tables]
static_assert(check(sk::plan::RingAllReduce{.ranks = 4, .count = 8}).sound());        // every rank ends with each contribution once
static_assert(check(sk::plan::RingAllReduce{4, 8}).most_messages == 2 * (4 - 1));
static_assert(sent_by(sk::plan::TorusAllReduce{4096, 1 << 20, 64}, 0).messages == 4 * 63);   // no memory: a table is a function
// [end]

TEST_CASE("the cheapest all-reduce of a measured network", "[guide]") {
  // [quote cheapest]
  const sk::plan::MessageTime near[] = {{1e3, 2.1e-6}, {1e5, 1.2e-5}, {1e7, 1.0e-3}}, far[] = {{1e3, 2.1e-5}, {1e5, 1.2e-4}, {1e7, 1.0e-2}};
  const sk::plan::Network network{.near = sk::plan::fit_level(near).level, .far = sk::plan::fit_level(far).level, .node = 8};
  const sk::plan::AllReduceChoice small = sk::plan::cheapest_all_reduce(network, 64, 1e3);     // recursive doubling
  const sk::plan::AllReduceChoice large = sk::plan::cheapest_all_reduce(network, 64, 1e8);     // torus, a node a row
  // [end]
  CHECK(small.algorithm == sk::plan::AllReduceAlgorithm::recursive_doubling);
  CHECK(large.algorithm == sk::plan::AllReduceAlgorithm::torus);
  CHECK(large.columns == 8);
  CHECK(network.near.alpha == Approx(2e-6).epsilon(0.1));
}

TEST_CASE("algorithms and compression", "[guide]") {
  std::vector<float> sums(4), halves(4), kept(4);
  std::vector<long> messages(4), bytes(4);
  // [quote algorithms]
  sk::spawn(4, [&](sk::ThreadComm& world) {
    std::vector<float> values(1000, 1.0f);
    const sk::comm::Traffic sent = sk::comm::ring_all_reduce(world, values);          // 6 messages, 6000 bytes from each rank
    const auto r = static_cast<std::size_t>(world.rank());                            // not quoted
    messages[r] = sent.messages;                                                      // not quoted
    bytes[r] = sent.bytes;                                                            // not quoted
    sums[r] = values[999];                                                            // not quoted
  });
  // [end]
  // [quote compress]
  sk::spawn(4, [&](sk::ThreadComm& world) {
    std::vector<float> values(1000, 0.1f);
    sk::comm::HalfWire<sk::bf16> half;
    sk::comm::compressed_all_reduce(world, half, values, sk::Mean{});                 // linear: summed as it travels, 2 bytes a value

    sk::comm::ErrorFeedback<sk::comm::TopK<100>> top;                                 // one value of 100, and what is left out is kept
    sk::comm::compressed_all_gather(world, top, values);                              // not linear: each rank decodes and adds
    // compressed_all_reduce(world, top, values) does not compile
    const auto r = static_cast<std::size_t>(world.rank());                            // not quoted
    halves[r] = values[0];                                                            // not quoted
    kept[r] = top.residual()[999];                                                    // not quoted
  });
  // [end]
  CHECK(sums == std::vector<float>(4, 4.0f));
  CHECK(messages == std::vector<long>(4, 6));
  CHECK(bytes == std::vector<long>(4, 6000));
  for (const float x : halves) CHECK(x == Approx(0.4).epsilon(0.01));
  for (const float x : kept) CHECK(x == Approx(0.1).epsilon(0.01));
}
