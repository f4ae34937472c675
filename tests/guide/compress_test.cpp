// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of all-reduce algorithms, their plan, and compression. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/compressed_collectives.hpp>
#include <skein/comm/compress/half_codec.hpp>
#include <skein/comm/compress/top_k.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/hierarchical/hierarchical.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/algorithm.hpp>
#include <skein/parallel/data/compress.hpp>
#include <skein/plan/collective_check.hpp>
#include <skein/plan/level_fit.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

// [quote tables]
static_assert(check(sk::plan::RingAllReduce{.ranks = 4, .count = 8}).sound());  // every rank ends with each contribution once
static_assert(check(sk::plan::RingAllReduce{4, 8}).most_messages == 2 * (4 - 1));
static_assert(sent_by(sk::plan::TorusAllReduce{4096, 1 << 20, 64}, 0).messages == 4 * 63);  // no memory: a table is a function
// [end]

TEST_CASE("the cheapest all-reduce of a measured network", "[guide]") {
  // [quote cheapest]
  const sk::plan::MessageTime near[] = {{1e3, 2.1e-6}, {1e5, 1.2e-5}, {1e7, 1.0e-3}},
                              far[] = {{1e3, 2.1e-5}, {1e5, 1.2e-4}, {1e7, 1.0e-2}};
  const sk::plan::Network network{.near = sk::plan::fit_level(near).level, .far = sk::plan::fit_level(far).level, .node = 8};
  const sk::plan::AllReduceChoice small = sk::plan::cheapest_all_reduce(network, 64, 1e3);  // recursive doubling
  const sk::plan::AllReduceChoice large = sk::plan::cheapest_all_reduce(network, 64, 1e8);  // torus, a node a row
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
    const sk::comm::Traffic sent = sk::comm::ring_all_reduce(world, values);  // 6 messages, 6000 bytes from each rank
    const auto r = static_cast<std::size_t>(world.rank());                    // not quoted
    messages[r] = sent.messages;                                              // not quoted
    bytes[r] = sent.bytes;                                                    // not quoted
    sums[r] = values[999];                                                    // not quoted
  });
  // [end]
  // [quote compress]
  sk::spawn(4, [&](sk::ThreadComm& world) {
    std::vector<float> values(1000, 0.1f);
    sk::comm::HalfCodec<sk::bf16> half;
    sk::comm::compressed_all_reduce(world, half, values, sk::Mean{});  // linear: summed as it travels, 2 bytes a value

    sk::comm::ErrorFeedback<sk::comm::TopK<100>> top;     // one value of 100, and what is left out is kept
    sk::comm::compressed_all_gather(world, top, values);  // not linear: each rank decodes and adds
    // compressed_all_reduce(world, top, values) does not compile
    const auto r = static_cast<std::size_t>(world.rank());  // not quoted
    halves[r] = values[0];                                  // not quoted
    kept[r] = top.residual()[999];                          // not quoted
  });
  // [end]
  CHECK(sums == std::vector<float>(4, 4.0f));
  CHECK(messages == std::vector<long>(4, 6));
  CHECK(bytes == std::vector<long>(4, 6000));
  for (const float x : halves) CHECK(x == Approx(0.4).epsilon(0.01));
  for (const float x : kept) CHECK(x == Approx(0.1).epsilon(0.01));
}

TEST_CASE("levels, and a network that is measured", "[guide]") {
  std::vector<float> sums(8);
  std::vector<double> alphas(4, -1);
  // [quote hierarchical]
  sk::spawn(8, [&](sk::ThreadComm& world) {
    sk::Hierarchical levels{world, 4};  // two nodes of four ranks; {world}: as MPI says
    std::vector<float> values(1000, 1.0f);
    levels.all_reduce(values, sk::Sum{});                        // a quarter of the bytes leaves a rank's node
    sums[static_cast<std::size_t>(world.rank())] = values[999];  // not quoted
  });
  // [end]
  // [quote measured]
  sk::spawn(4, [&](sk::ThreadComm& world) {
    const sk::comm::MeasuredNetwork network = sk::comm::measured_network(world);  // once a process; SKEIN_NETWORK=FILE keeps it
    const double ring = ring_seconds(network.network, world.size(), 1e6), own = network.own.seconds(1e6);
    alphas[static_cast<std::size_t>(world.rank())] = ring > 0 && own > 0 ? 1 : 0;  // not quoted
  });
  // [end]
  CHECK(sums == std::vector<float>(8, 8.0f));
  CHECK(alphas == std::vector<double>(4, 1.0));
}

TEST_CASE("a training whose gradients travel in 16 bits round a ring", "[guide]") {
  const auto data = sk::data::from_tensors(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, sk::Extents{1, {1}},
                                           std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15});
  std::vector<double> losses(4);
  sk::comm::Counts planned, counted;
  // [quote wire]
  using namespace sk::parallel;
  using Half = Compress<sk::comm::HalfCodec<sk::bf16>>;
  sk::spawn(4, [&](sk::ThreadComm& threads) {
    sk::Counted world{threads};  // counts what goes through another
    sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.03f}, DataParallel{world, Half{}, Algorithm<Ring>{}}};
    const sk::comm::Counts before = world.counts();
    const sk::History history = trainer.fit(data, {.epochs = 100, .batch = 8, .progress = false, .threads = 1});
    if (world.rank() == 0) {                                                        // not quoted
      planned = 100 * trainer.train_step().policy_state().exchange().planned();     // not quoted
      counted = world.counts() - before;                                            // not quoted
    }                                                                               // not quoted
    losses[static_cast<std::size_t>(world.rank())] = history.back().training.loss;  // not quoted
    // trainer.train_step().policy_state().exchange().planned(): collectives, messages and bytes of a step, equal to what was
    // counted
  });
  // [end]
  for (const double loss : losses) CHECK(loss < 0.2);
  CHECK(planned.messages == counted.messages);
  CHECK(planned.bytes == counted.bytes);
}
