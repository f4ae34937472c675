// SPDX-License-Identifier: Apache-2.0
// A loop by hand: gradients of several batches make one step, and their norm is limited.
#include <skein/skein.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;
using Model = sk::Model<Net, sk::Shape<28, 28, 1>>;

int main() {
  const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
  Model model{sk::Seed{1}};
  sk::Executor executor{model, sk::nn::CrossEntropy{}, {.capacity = 25}};
  const sk::optim::BoundOptimizer<sk::optim::Adam, float, sk::Cpu> optimizer{{.lr = 0.005f}, Model::program};
  sk::data::Loader<> loader{digits, {.batch = 25, .seed = sk::Seed{2}}};
  // [quote loop]
  constexpr int accumulate = 4;  // batches for each step: 100 samples
  constexpr double most = 1.0;   // limit of the gradients' norm
  long batches = 0, steps = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    sk::nn::LossSums sums;
    for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
      const auto step =
          executor.forward_backward(batch, {.scale = 1.0 / (accumulate * 25), .accumulate = batches % accumulate != 0});
      if (++batches % accumulate != 0) continue;
      sums += step;                              // of all batches that were accumulated
      const auto gradients = model.gradients();  // of all parameters, one after the other; gaps are 0
      double squares = 0;
      for (std::size_t i = 0; i < gradients.size; ++i) squares += gradients[i] * gradients[i];
      const float* summed[] = {gradients.data};
      optimizer.update(
          model.modify().begin(),
          {.step = ++steps, .lr = 0.005, .gradient_scale = std::min(1.0, most / std::sqrt(squares)), .gradients = summed}, 0,
          Model::sizes.stored);
    }
    std::printf("epoch %d: loss %.3f, %.1f %% right\n", epoch + 1, sums.mean(), 100 * sums.correct / 2000);
  }
  // [end]
}
