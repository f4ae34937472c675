// SPDX-License-Identifier: Apache-2.0
// Nothing that a training does touches the gradients of what is frozen from the first layer on: under any policy that leaves them
// out they take no memory.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/train/not_finite.hpp>
#include <skein/train/trainer.hpp>

#include "../support/rank_check.hpp"
#include "../support/resident.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Linear<1024>, nn::Relu, nn::Linear<64>, nn::Linear<4>>;
template <class Precision> using ModelOf = sk::Model<Net, sk::Shape<1040>, sk::Cpu, Precision>;
using Model = ModelOf<float>;
constexpr long first = Model::parameter("2.weight").offset;
constexpr std::size_t given = static_cast<std::size_t>(first) * sizeof(float) / (2 * 1024 * 1024) * (2 * 1024 * 1024);

struct Batch {
  std::vector<float> x = std::vector<float>(24 * 1040), y = std::vector<float>(24 * 4);
  Batch() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * static_cast<float>(i));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(1.3f * static_cast<float>(i));
  }
  sk::BatchView<float> part(int rank, int ranks) const {
    sk::BatchView<float> b{x.data(), 1040, nullptr, y.data(), 4, 24};
    b.global_count = 24;
    return b.part(24 * rank / ranks, 24 * (rank + 1) / ranks);
  }
};

/// Bytes of the frozen layer's gradients that are in memory after some steps, in the arrays of all workers or shards.
template <class M, class Optimizer, class Policy = sk::parallel::SingleProcess>
std::size_t resident(const Optimizer& optimizer, int arrays, int threads, const Policy& policy = {}, int rank = 0,
                     int ranks = 1) {
  const Batch batch;
  M model{sk::Seed{5}};
  sk::train::TrainStep step{model, nn::Mse{}, optimizer, policy};
  step.reserve({.capacity = 24, .threads = threads});
  for (std::uint64_t i = 1; i < 7; ++i)  // two batches a step
    step.step(batch.part(rank, ranks), {.clip_norm = 1, .accumulate = i % 2 == 0, .update = i % 2 == 0, .key = i});
  std::size_t bytes = 0;
  for (int i = 0; i < arrays; ++i) bytes += support::resident_bytes(step.executor().gradients(i), given);
  return bytes;
}
template <class Optimizer> Optimizer head(Optimizer optimizer) {
  optimizer.groups = {sk::optim::frozen("0.*")};
  return optimizer;
}
}  // namespace

TEST_CASE("gradients of a frozen beginning take no memory in a training of one rank", "[train]") {
  const auto adam = head(sk::optim::Adam{.lr = 0.01f});
  const auto lars = head(sk::optim::chain(sk::optim::Lars{}, sk::optim::Sgd{.lr = 0.1f}));
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    CHECK(resident<Model>(adam, threads, threads) == 0);
    CHECK(resident<Model>(lars, threads, threads) == 0);
    CHECK(resident<ModelOf<sk::precision::bf16>>(adam, threads, threads) == 0);
    CHECK(resident<ModelOf<sk::precision::fp16>>(adam, threads, threads) == 0);
  }
}

TEST_CASE("a model that thaws trains as one whose training begins with its weights", "[train]") {
  const Batch batch;
  Model model{sk::Seed{5}}, twin{sk::Seed{6}};
  const auto train = [&](Model& m, const sk::optim::Adam& adam) {
    sk::train::TrainStep step{m, nn::Mse{}, adam, sk::parallel::SingleProcess{}};
    step.reserve({.capacity = 24, .threads = 2});
    for (std::uint64_t i = 1; i < 4; ++i) step.step(batch.part(0, 1), {.key = i});
  };
  train(model, head(sk::optim::Adam{.lr = 0.01f}));
  const std::vector<float> head_trained(model.parameters().begin(), model.parameters().end());
  {
    const auto weights = twin.modify();
    std::copy(head_trained.begin(), head_trained.end(), weights.data());
  }
  train(model, {.lr = 0.01f}), train(twin, {.lr = 0.01f});
  CHECK(std::equal(model.parameters().begin(), model.parameters().end(), twin.parameters().begin()));
  CHECK_FALSE(std::equal(head_trained.begin(), head_trained.begin() + first, model.parameters().begin()));
}

TEST_CASE("gradients of a frozen beginning take no memory on several ranks", "[train]") {
  const auto adam = head(sk::optim::Adam{.lr = 0.01f});
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const auto bytes = [&](const auto& policy, int arrays, int threads) {
      return resident<Model>(adam, arrays, threads, policy, world.rank(), world.size());
    };
    using namespace sk::parallel;
    RANK_CHECK(bytes(DataParallel{world}, 2, 2) == 0);
    RANK_CHECK(bytes(DataParallel{world, {.bucket_bytes = 4096}}, 1, 1) == 0);
    RANK_CHECK(bytes(DataParallel{world, Sharded<1>{}}, 2, 2) == 0);
    RANK_CHECK(bytes(DataParallel{world, Sharded<2>{}}, 2, 2) == 0);
    RANK_CHECK(bytes(DataParallel{world, Reproducible<6>{}}, 3, 2) == 0);
    RANK_CHECK(bytes(ModelAverage{world, {}, Period<2>{}}, 2, 2) == 0);
  });
}
