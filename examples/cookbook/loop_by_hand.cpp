// SPDX-License-Identifier: Apache-2.0
// A loop by hand: the gradients of four batches make one step, and their norm is limited.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = 25}};  // the most samples in one call
    sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 0.005f}, model};
    sk::data::Loader<> loader{digits, {.batch = 25, .seed = sk::Seed{2}}};
    for (int epoch = 0; epoch < 5; ++epoch) {
      sk::nn::LossSums sums;
      for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
        const long part = batch.step % 4;  // of a step of 100 samples
        const auto step = executor.forward_backward(batch, {.of_samples = 100, .accumulate = part != 0});
        if (part != 3) continue;
        sums += step;                            // of all four batches
        executor.divide_by_weight(step.weight);  // matters with class_weights or ignore_label
        optimizer.step(model, {.clip_norm = 1.0});
      }
      std::printf("epoch %d: loss %.3f, %.1f %% right\n", epoch + 1, sums.mean(), 100 * sums.correct / 2000);
    }
  });
}
