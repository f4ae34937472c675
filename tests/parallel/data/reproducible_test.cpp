// SPDX-License-Identifier: Apache-2.0
// Reproducible<V> over threads; tests/distributed/shards.cpp has the same over processes.
#include "../../support/reproducible_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace cases = reproducible_cases;
namespace sk = skein;

namespace {
/// train(policy, threads) gives the same on all these worlds, and what a training alone gives but for rounding.
template <int V, class Train> void same_bits(std::initializer_list<int> worlds, Train train) {
  const auto alone = train(sk::parallel::SingleProcess{}, 1);
  auto first = alone;
  for (int ranks : worlds)
    for (int threads : {1, 2, 3}) {
      if (threads > 1 && ranks > 3) continue;
      INFO(ranks << " ranks of " << threads << " threads");
      CHECK_NOTHROW(sk::spawn(ranks,
                              [&](sk::ThreadComm& world) {
                                const auto r = train(sk::parallel::DataParallel{world, sk::parallel::Reproducible<V>{}}, threads);
                                if (ranks * threads == 1) first = r;
                                RANK_CHECK(r == first);
                              },
                              {.deadline = 120}));
    }
  shard_cases::require_close(first, alone, 2e-5);
  CHECK(first.parameters != alone.parameters);  // another order of sums
}
}  // namespace

TEST_CASE("the same bits on 1, 2, 3, 4 and 8 ranks, with any number of threads", "[parallel]") {
  same_bits<8>({1, 2, 3, 4, 8}, [](const auto& policy, int threads) { return cases::layer_wise(policy, threads); });
}
TEST_CASE("the same bits depth-first, with accumulation and clipping, of a number of shards that is no power of two",
          "[parallel]") {
  same_bits<5>({1, 2, 3, 5}, [](const auto& policy, int threads) { return cases::clipped(policy, threads); });
}

TEST_CASE("more ranks than shards are refused by every rank", "[parallel]") {
  CHECK_NOTHROW(sk::spawn(6, [](sk::ThreadComm& world) { cases::refuses_more_ranks(world); }, {.deadline = 60}));
}

TEST_CASE("samples of other shards are refused", "[parallel]") {
  std::string message;
  CHECK_NOTHROW(sk::spawn(1, [&](sk::ThreadComm& world) {
    cases::Model model{sk::Seed{1}};
    using Policy = sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::Reproducible<8>>;
    sk::train::TrainStep<cases::Model, sk::nn::CrossEntropy, sk::optim::Sgd, Policy> train_step{model, {}, {}, Policy{world}};
    train_step.reserve({.capacity = 10, .threads = 1});
    constexpr long pitch = sk::sample_pitch(cases::Model::input::extents);
    const std::vector<float> x(10 * pitch);
    const std::vector<std::int32_t> labels(10);
    sk::data::Batch<float> batch;
    batch.x = x.data(), batch.pitch = pitch, batch.labels = labels.data();
    batch.count = 10;
    batch.global_count = 20;
    try {
      train_step.step(batch);
    } catch (const sk::ArgumentError& e) { message = e.what(); }
  }));
  CHECK(message.find("this rank's virtual shards have 20 samples, it is given 10: give data::Loader .shards = 8") !=
        std::string::npos);
}
