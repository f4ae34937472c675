// SPDX-License-Identifier: Apache-2.0
// One step of LeNet, batch 128, and out: what bench/compile.py times from process start, and whose size it takes.
#include "networks.hpp"

int main() {
  using namespace bench;
  ModelOf<LeNet> model{sk::Seed{7}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}};
  sk::Arena<float> x(128 * 784);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 7) - 3;
  const std::vector<std::int32_t> labels(128, 3);
  sk::data::Batch<float> batch;
  batch.x = x.data();
  batch.pitch = 784;
  batch.sample = {3, {28, 28, 1}};
  batch.labels = labels.data();
  batch.count = batch.global_count = 128;
  trainer.train_step().reserve({.capacity = 128});
  return trainer.train_step().step(batch).mean() > 0 ? 0 : 1;
}
