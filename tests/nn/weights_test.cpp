// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <vector>

#include <skein/nn/conv2d.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/global_avg_pool.hpp>
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
  sk::Executor<Model, nn::Mse> executor(model, {}, {.capacity = samples, .threads = 2});
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
  sk::Executor<Model, nn::Mse> fresh(model, {}, {.capacity = samples, .threads = 2});
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
  sk::Executor<Model, nn::Mse> predicting(model, {}, {.capacity = samples, .threads = 2, .training = false});
  const std::vector<float> x(samples * 64, 0.25f), y(samples * 40, 0.5f);
  const sk::BatchView<float> batch{.x = x.data(), .pitch = 64, .targets = y.data(), .target_pitch = 40, .count = samples};
  CHECK(predicting.evaluate(batch).weight > 0);
  CHECK(predicting.memory_plan().gradients == 0);
  CHECK(std::as_const(model).gradients().size == 0);
  CHECK_THROWS_WITH(predicting.forward_backward(batch), Catch::Contains(".training = false has no gradients"));
  sk::Executor<Model, nn::Mse> training(model, {}, {.capacity = samples, .threads = 1});
  training.forward_backward(batch);
  CHECK(std::as_const(model).gradients().size == static_cast<std::size_t>(Model::sizes.stored));
}

namespace {
using Images = nn::Sequential<nn::Conv2d<8, sk::Kernel<3>>, nn::Relu, nn::GlobalAvgPool, nn::Linear<5>>;
using Small = sk::Model<Images, sk::Shape<8, 8, 2>>;
using Large = sk::Model<Images, sk::Shape<12, 10, 2>>;

template <class L> concept GivesPointers = requires(L&& lease) {
  std::forward<L>(lease).span();
  std::forward<L>(lease).data();
};
/// The outputs of a new executor of the model, for samples of a formula.
template <class Model> std::vector<float> outputs(Model& model) {
  constexpr long count = Model::input::count, pitch = sk::sample_pitch(Model::input::extents);
  std::vector<float> x(3 * pitch);
  for (long i = 0; i < 3; ++i)
    for (long j = 0; j < count; ++j)
      x[static_cast<std::size_t>(i * pitch + j)] = sk::random_uniform(5, 0, static_cast<std::uint64_t>(i * count + j)) - 0.5f;
  sk::Executor<Model, nn::Mse> executor(model, {}, {.capacity = 3, .threads = 1, .training = false});
  executor.evaluate(sk::BatchView<float>{.x = x.data(), .pitch = pitch, .count = 3});
  return std::vector<float>(executor.outputs(), executor.outputs() + 3 * sk::row_pitch(5));
}
}  // namespace

TEST_CASE("Two input shapes of a network have one Weights, whichever writes them", "[nn]") {
  // [quote with_input]
  auto small = std::make_unique<Small>(sk::Seed{4});        // of images of 8 x 8
  Large large = small->with_input<sk::Shape<12, 10, 2>>();  // the same weights, for images of 12 x 10
  // [end]
  Large alone{sk::Seed{4}};
  CHECK(large.parameters().data == small->parameters().data);
  CHECK(large.buffers().data == small->buffers().data);
  CHECK(outputs(large) == outputs(alone));  // initial values are of the table, not of the input

  const auto before = outputs(large);
  small->modify()[1] += 1;
  alone.modify()[1] += 1;
  CHECK(large.version() == small->version());
  CHECK(outputs(large) != before);
  CHECK(outputs(large) == outputs(alone));
  {
    const auto lease = large.modify();  // stops the passes of both
    CHECK_THROWS_WITH(outputs(*small), Catch::Contains("a lease that modify() gave is still there"));
  }
  Small third = large.with_input<sk::Shape<8, 8, 2>>();
  CHECK(outputs(third) == outputs(*small));
  CHECK(third.gradients().data != small->gradients().data);  // gradients are each one's own
  small.reset();
  CHECK(outputs(large) == outputs(alone));
}

TEST_CASE("What is read of weights cannot be written: a span that was kept changes nothing in silence", "[nn]") {
  static_assert(std::is_same_v<decltype(std::declval<Small&>().parameters()), sk::DeviceSpan<const float, sk::Cpu>>);
  using Lease = decltype(std::declval<Small&>().modify());
  static_assert(GivesPointers<Lease&> && !GivesPointers<Lease>);  // those of a lease end with it
  Small model;
  const auto read = model.parameters();
  const float first = read.data[1];
  model.modify()[1] = first + 1;
  CHECK(read.data[1] == first + 1);  // it is the weights, as they are
}
