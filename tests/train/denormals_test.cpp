// SPDX-License-Identifier: Apache-2.0
// Momenta of weights that get no gradient any more decay into denormals, on which processors are slow. Within steps they are
// zero.
#include <skein/data/batch.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

namespace {
struct Aged {
  std::vector<float> momenta, parameters;
  long denormal = 0;
};

/// One step with a gradient, and 1100 steps whose inputs and targets are zero: 0.9^1100 is 4e-51.
Aged age(int threads, sk::Denormals denormals, sk::Execution execution) {
  sk::Model<sk::nn::Linear<8>, sk::Shape<8>> model{sk::Seed{1}};
  sk::train::TrainStep train_step{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9f},
                                  sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = 8, .execution = execution, .threads = threads, .denormals = denormals});
  const long pitch = sk::row_pitch(8);
  sk::Arena<float> x(static_cast<std::size_t>(8 * pitch)), zero(static_cast<std::size_t>(8 * pitch));
  for (long i = 0; i < 8 * pitch; ++i) x.data()[i] = static_cast<float>(i % 5);
  sk::data::Batch<float> batch;
  batch.pitch = batch.target_pitch = pitch;
  batch.sample = {1, {8}};
  batch.target_length = 8;
  batch.count = batch.global_count = 8;
  batch.targets = zero.data();
  for (int i = 0; i <= 1100; ++i) {
    batch.x = i == 0 ? x.data() : zero.data();
    train_step.step(batch);
  }
  Aged aged;
  const auto momenta = train_step.arrays().whole(sk::parallel::training_arrays::optimizer);
  const auto& weight = decltype(model)::parameter("weight");
  for (long i = 0; i < weight.extents.count(); ++i) {
    const float m = momenta.data[weight.offset + i];
    aged.momenta.push_back(m);
    aged.denormal += std::fpclassify(m) == FP_SUBNORMAL;
  }
  aged.parameters.assign(model.parameters().begin(), model.parameters().end());
  return aged;
}
}  // namespace

TEST_CASE("momenta that have decayed are zero, not denormal, with any number of threads; an option keeps them", "[train]") {
  if (!sk::detail::FloatMode::exists) return;
  for (const sk::Execution execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
    const Aged flushed = age(1, sk::Denormals::flush, execution), kept = age(1, sk::Denormals::keep, execution);
    CHECK(flushed.denormal == 0);
    CHECK(flushed.momenta == std::vector<float>(64, 0));
    CHECK(kept.denormal == 64);  // rounding keeps the least denormal where it is
    CHECK(flushed.parameters == kept.parameters);
    for (int threads : {2, 4}) {
      CHECK(age(threads, sk::Denormals::flush, execution).denormal == 0);
      CHECK(age(threads, sk::Denormals::keep, execution).denormal == 64);
    }
  }
}
