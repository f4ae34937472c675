// SPDX-License-Identifier: Apache-2.0
// A loop by hand on several ranks: each has a part of every batch, and one all-reduce sums their gradients.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    sk::spawn(2, [](sk::ThreadComm& world) {
      const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
      sk::data::Loader<> loader{digits, {.batch = 50, .seed = sk::Seed{2}, .ranks = world.size(), .rank = world.rank()}};
      sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
      world.broadcast(model.modify());  // equal weights at the start: those of rank 0
      sk::Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = loader.capacity(), .threads = 1}};
      sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 0.005f}, model};
      for (int epoch = 0; epoch < 3; ++epoch) {
        sk::nn::LossSums sums;
        for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
          const auto own = executor.forward_backward(batch, {.of_samples = batch.global_count});  // this rank's part of the mean
          executor.divide_by_weight(world.all_reduce(own.weight));  // matters with class_weights or ignore_label
          sums += own;
          world.all_reduce(model.gradients(), sk::Sum{});
          optimizer.step(model, {.clip_norm = 1.0});
        }
        const double loss = world.all_reduce(sums.loss), weight = world.all_reduce(sums.weight);
        if (world.rank() == 0) std::printf("epoch %d: loss %.3f\n", epoch + 1, loss / weight);
      }
    });
  });
}
