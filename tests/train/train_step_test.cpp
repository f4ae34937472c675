// SPDX-License-Identifier: Apache-2.0
// Steps that a program makes by itself, without a Trainer.
#include <skein/train/train_step.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>

namespace sk = skein;
namespace nn = skein::nn;

TEST_CASE("steps by hand have other random numbers each, of the model's seed, or those of their key", "[train]") {
  using Model = sk::Model<nn::Sequential<nn::Linear<32>, nn::Dropout<sk::Rate<1, 2>>, nn::Linear<1>>, sk::Shape<4>>;
  constexpr long n = 8, pitch = sk::sample_pitch(sk::Extents{1, {4}}), width = sk::row_pitch(1);
  std::vector<float> x(n * pitch), y(n * width);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5f;
  const sk::BatchView<float> batch{x.data(), pitch, nullptr, y.data(), width, n};
  // The losses of a few steps that change nothing.
  const auto losses = [&](std::uint64_t seed, const sk::optim::StepOptions& options, bool accumulates = false) {
    Model model{sk::Seed{5}}, other{sk::Seed{seed}};
    {
      const auto lease = other.modify();
      std::copy(model.parameters().begin(), model.parameters().end(), lease.begin());
    }
    sk::train::TrainStep step{other, nn::Mse{}, sk::optim::Sgd{.lr = 0}, sk::parallel::SingleProcess{}};
    step.reserve({.capacity = n});
    std::vector<double> all;
    for (int i = 0; i < 4; ++i) {
      sk::optim::StepOptions one = options;
      if (accumulates) one.accumulate = i == 2, one.update = i % 2 == 0;  // a step of one call, one of two, the first of a third
      const double sum = nn::LossSums(step.step(batch, one)).loss;
      all.push_back(one.accumulate ? sum - all.back() : sum);
    }
    return all;
  };
  for (const bool accumulates : {false, true}) {
    const std::vector<double> own = losses(5, {}, accumulates);
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) CHECK(own[i] != own[k]);
    CHECK(own == losses(5, {}, accumulates));
    CHECK(own != losses(6, {}, accumulates));
  }
  const std::vector<double> given = losses(5, {.key = 9});
  CHECK((given[1] == given[0] && given == losses(6, {.key = 9})));
}
