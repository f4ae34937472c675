// SPDX-License-Identifier: Apache-2.0
// Copies of weights that executors share: one packs, others wait or find them made.
#include <catch2/catch.hpp>

#include <thread>
#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/packed_weights.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Packed = nn::PackedWeights<float, sk::Cpu>;
using Net = nn::Sequential<nn::Linear<96>, nn::Linear<40>>;
using Model = sk::Model<Net, sk::Shape<64>>;
using Executor = sk::Executor<Model, nn::Mse>;
constexpr long samples = 33;
const std::vector<float> x = [] {
  std::vector<float> values(samples * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = sk::random_uniform(5, 0, i) - 0.5f;
  return values;
}();
const sk::BatchView<float> batch{.x = x.data(), .pitch = 64, .count = samples};

std::vector<float> outputs(Executor& executor) {
  executor.evaluate(batch);
  return std::vector<float>(executor.outputs(), executor.outputs() + samples * sk::row_pitch(40));
}
}  // namespace

TEST_CASE("One executor packs a version, and all of its workers take part", "[nn]") {
  Packed packed(16, 0, {});
  const std::uint64_t first = packed.join(), other = packed.join();
  CHECK(first != other);
  CHECK(packed.begin(4, first));
  CHECK(packed.begin(4, first));  // its next worker
  packed.end(4);
  CHECK_FALSE(packed.begin(4, first));
  CHECK_FALSE(packed.begin(4, other));
  CHECK(packed.begin(6, other));
  packed.abandon(first);  // who does not pack gives nothing up
  CHECK(packed.begin(6, other));
  packed.abandon(other);
  CHECK(packed.begin(6, first));
  packed.end(6);
  CHECK(packed.begin(4, other));  // whatever was there before
}

TEST_CASE("Another executor waits until the copies are made", "[nn]") {
  Packed packed(16, 0, {});
  const std::uint64_t first = packed.join(), other = packed.join();
  REQUIRE(packed.begin(2, first));
  bool helps = true;
  std::thread waits([&] { helps = packed.begin(2, other); });
  packed.packed()[0] = 3;
  packed.end(2);
  waits.join();
  CHECK_FALSE(helps);
}

TEST_CASE("Executors of one program share the copies of a model's weights, whatever their batch and threads", "[nn]") {
  Model model{sk::Seed{2}};
  Executor one(model, {}, {.capacity = samples, .threads = 2}),
      two(model, {}, {.capacity = 2 * samples, .threads = 1, .training = false});
  CHECK(one.packed_weights() == two.packed_weights());
  Model another{sk::Seed{2}};
  Executor apart(another, {}, {.capacity = samples, .threads = 2});
  CHECK(one.packed_weights() != apart.packed_weights());
  const auto before = outputs(one);
  CHECK(outputs(two) == before);
  model.modify()[3] += 1;
  const auto after = outputs(two);
  CHECK(after != before);
  CHECK(outputs(one) == after);
  CHECK(outputs(apart) == before);
}

TEST_CASE("Predictors of several threads read one packing", "[nn]") {
  Model model{sk::Seed{2}};
  Executor alone(model, {}, {.capacity = samples, .threads = 1, .training = false});
  const auto expected = outputs(alone);
  for (int turn = 0; turn < 20; ++turn) {
    model.modify()[0] += 0.0f;  // all must pack anew
    std::vector<std::vector<float>> got(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Executor executor(model, {}, {.capacity = samples, .threads = t % 2 ? 2 : 1, .training = false});
        got[t] = outputs(executor);
      });
    for (std::thread& t : threads) t.join();
    for (const auto& g : got) REQUIRE(g == expected);
  }
}
