// SPDX-License-Identifier: Apache-2.0
// What is frozen from the first layer on takes no memory for gradients, in any worker's array, and nothing that a training does
// touches it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <skein/nn/exec/gradient_arrays.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/summary.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/state.hpp>

#include "../../support/resident.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr std::size_t large_page = 2 * 1024 * 1024;
using Model = sk::Model<nn::Sequential<nn::Linear<1024>, nn::Relu, nn::Linear<64>, nn::Linear<4>>, sk::Shape<1040>>;
constexpr long first = Model::parameter("2.weight").offset;
constexpr std::size_t frozen_bytes = static_cast<std::size_t>(first) * sizeof(float);
static_assert(frozen_bytes > 2 * large_page);

struct Batch {
  std::vector<float> x = std::vector<float>(8 * 1040), y = std::vector<float>(8 * 4);
  Batch() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * static_cast<float>(i));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(1.3f * static_cast<float>(i));
  }
  sk::BatchView<float> view() const { return {x.data(), 1040, nullptr, y.data(), 4, 8}; }
};
/// Of the whole pages before `first`: what is not given back is less than a large page.
std::size_t resident(const float* gradients) {
  return support::resident_bytes(gradients, frozen_bytes / large_page * large_page);
}
}  // namespace

TEST_CASE("gradients of frozen layers take no memory, by hand, with any number of workers") {
  const Batch batch;
  for (const auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
    for (const int threads : {1, 3}) {
      Model model{sk::Seed{1}};
      sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.groups = {sk::optim::frozen("0.*")}}, model};
      CHECK(optimizer.first_trained() == first);
      sk::Executor executor{
          model,
          nn::Mse{},
          {.capacity = 8, .execution = execution, .threads = threads, .first_trained = optimizer.first_trained()}};
      for (int step = 0; step < 2; ++step) {
        executor.forward_backward(batch.view(), {.of_samples = 16});
        executor.forward_backward(batch.view(), {.of_samples = 16, .accumulate = true});
        executor.divide_by_weight(12);
        optimizer.step(model, {.clip_norm = 1});
      }
      for (int w = 0; w < threads; ++w) CHECK(resident(executor.gradients(w)) == 0);
      const std::size_t whole = static_cast<std::size_t>(Model::sizes.stored + sk::gradient_tail) * sizeof(float),
                        given = frozen_bytes / large_page * large_page;
      CHECK(executor.memory_plan().gradients == static_cast<std::size_t>(threads) * (whole - given));
      CHECK(std::all_of(model.gradients().begin(), model.gradients().begin() + first, [](float g) { return g == 0; }));
    }
}

TEST_CASE("an executor that trains all of a model makes gradients where one before it had none, and the other way round") {
  const Batch batch;
  Model model{sk::Seed{1}}, twin{sk::Seed{1}};
  const auto gradients = [&](Model& of, long first_trained) {
    sk::Executor executor{of, nn::Mse{}, {.capacity = 8, .threads = 2, .first_trained = first_trained}};
    executor.forward_backward(batch.view());
    return std::vector<float>(std::as_const(of).gradients().begin(), std::as_const(of).gradients().end());
  };
  const std::vector<float> head = gradients(model, first), all = gradients(model, 0), fresh = gradients(twin, 0);
  CHECK(all == fresh);
  CHECK(std::equal(head.begin() + first, head.end(), all.begin() + first));
  CHECK(gradients(model, first) == head);       // what the training of all has left is gone
  CHECK(gradients(model, first + 64) == head);  // a layer that is frozen in part is made whole
}

TEST_CASE("gradients in memory of another owner stay there") {
  const auto size = static_cast<std::size_t>(Model::sizes.stored + sk::gradient_tail);
  const auto memory = std::make_shared<sk::Arena<float>>(size);
  std::fill_n(memory->data(), size, 1.0f);
  Model model{sk::Seed{1}};
  CHECK(model.owns_gradients());
  model.place_gradients({memory, memory->data()});
  CHECK_FALSE(model.owns_gradients());
  const nn::GradientArrays<Model> arrays(model, 2, first, first + 64);
  CHECK(arrays.array(0) == memory->data());
  CHECK(std::count(memory->data(), memory->data() + size, 0.0f) == first + 64);
  CHECK(support::resident_bytes(arrays.array(0), size * sizeof(float)) >= size * sizeof(float) / 4096 * 4096 - 4096);
  CHECK(resident(arrays.array(1)) == 0);
  CHECK(arrays.bytes() == 2 * size * sizeof(float) - frozen_bytes / large_page * large_page);
}
