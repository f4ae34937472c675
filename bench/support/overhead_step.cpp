// SPDX-License-Identifier: Apache-2.0
// N steps of SGD of Linear(8, 8), batch 8, through the TrainStep that Trainer::fit uses: a program for an instruction counter
// (bench/overhead.py).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <skein/data/batch.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 1;
  sk::Model<sk::nn::Linear<8>, sk::Shape<8>> model{sk::Seed{1}};
  sk::train::TrainStep train_step{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = 8, .threads = 1});
  sk::Arena<float> x(8 * sk::row_pitch(8)), targets(8 * sk::row_pitch(8));
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      x.data()[i * sk::row_pitch(8) + j] = static_cast<float>((3 * i + 5 * j) % 7) - 3,
                                      targets.data()[i * sk::row_pitch(8) + j] = static_cast<float>(i == j);
  sk::data::Batch<float> batch;
  batch.x = x.data();
  batch.pitch = sk::row_pitch(8);
  batch.sample = {1, {8}};
  batch.targets = targets.data();
  batch.target_pitch = sk::row_pitch(8);
  batch.target_length = 8;
  batch.count = batch.global_count = 8;
  double loss = 0;
  // Each with a key of its own, as a fit gives them.
  for (long i = 0; i < steps; ++i) loss = train_step.step(batch, {.key = static_cast<std::uint64_t>(i) + 1}).mean();
  std::printf("loss %.9g\n", loss);
}
