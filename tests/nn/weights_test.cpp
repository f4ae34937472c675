// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;

TEST_CASE("The version moves when a lease ends, and is nobody's while one is there", "[nn]") {
  sk::Weights<float, sk::Cpu> weights(40, 3, {});
  const std::uint64_t first = weights.version();
  CHECK(first % 2 == 0);
  {
    auto lease = weights.modify();
    lease[7] = 2;
    CHECK(weights.version() % 2 == 1);
    CHECK_THROWS_WITH(weights.assert_at_rest(), Catch::Contains("a lease that modify() gave is still there"));
    {
      auto inner = weights.modify();
      inner.unchanged();
    }
    CHECK(weights.version() % 2 == 1);
    auto moved = std::move(lease);
    CHECK(moved.size() == 40);
  }
  CHECK_NOTHROW(weights.assert_at_rest());
  CHECK(weights.version() > first);
  CHECK(weights.version() % 2 == 0);
  CHECK(weights.read().data[7] == 2);
  const std::uint64_t second = weights.version();
  weights.modify().unchanged();
  CHECK(weights.version() == second);
  {
    auto outer = weights.modify();
    outer.unchanged();
    weights.modify()[0] = 1;  // one of the two has changed them
  }
  CHECK(weights.version() > second);
  const std::uint64_t third = weights.version();
  weights.changed();
  CHECK(weights.version() == third + 2);
  CHECK(weights.buffers().size == 3);
}

namespace {
using Net = nn::Sequential<nn::Linear<96>, nn::Relu, nn::Linear<40>>;
constexpr long samples = 33;

/// A pass over weights whose copies were made, after they were written under a lease, has what a new executor has.
template <class Model> void copies_follow() {
  Model model{sk::Seed{2}};
  std::vector<float> x(samples * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(5, 0, i) - 0.5f;
  const sk::BatchView<float> batch{.x = x.data(), .pitch = 64, .count = samples};
  const auto outputs = [](auto& executor) {
    return std::vector<float>(executor.outputs(), executor.outputs() + samples * sk::row_pitch(40));
  };
  sk::Executor<Model, nn::Mse> executor(model, {}, {.batch = samples, .threads = 2});
  executor.evaluate(batch);
  const auto before = outputs(executor);
  {
    auto weights = model.modify();
    weights[3] += 1;
    CHECK_THROWS_WITH(executor.evaluate(batch), Catch::Contains("End it (its scope) before the pass"));
    weights[5] -= 1;  // after a pass that would have made copies
  }
  executor.evaluate(batch);
  CHECK(outputs(executor) != before);
  sk::Executor<Model, nn::Mse> fresh(model, {}, {.batch = samples, .threads = 2});
  fresh.evaluate(batch);
  CHECK(outputs(executor) == outputs(fresh));
}
}  // namespace

TEST_CASE("A lease that is kept stops the pass; copies of the weights follow one that has ended", "[nn]") {
  copies_follow<sk::Model<Net, sk::Shape<64>>>();
  copies_follow<sk::Model<Net, sk::Shape<64>, sk::Cpu, sk::precision::bf16>>();
}

TEST_CASE("A model has no gradients until somebody asks; an executor that does not train never does", "[nn]") {
  using Model = sk::Model<Net, sk::Shape<64>>;
  Model model;
  CHECK(std::as_const(model).gradients().size == 0);
  sk::Executor<Model, nn::Mse> predicting(model, {}, {.batch = samples, .threads = 2, .training = false});
  const std::vector<float> x(samples * 64, 0.25f), y(samples * 40, 0.5f);
  const sk::BatchView<float> batch{.x = x.data(), .pitch = 64, .targets = y.data(), .target_pitch = 40, .count = samples};
  CHECK(predicting.evaluate(batch).weight > 0);
  CHECK(predicting.memory_plan().gradients == 0);
  CHECK(std::as_const(model).gradients().size == 0);
  CHECK_THROWS_WITH(predicting.forward_backward(batch), Catch::Contains(".training = false has no gradients"));
  sk::Executor<Model, nn::Mse> training(model, {}, {.batch = samples, .threads = 1});
  training.forward_backward(batch);
  CHECK(std::as_const(model).gradients().size == static_cast<std::size_t>(Model::sizes.stored));
}
