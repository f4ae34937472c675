// SPDX-License-Identifier: Apache-2.0
// A user's own program: a small network learns a sine from samples, and says how far its loss fell. Every consumer in the tests
// builds this file.
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace sk = skein;

using Network = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<1>>;

int main() {
  std::vector<float> x, y;
  for (int i = 0; i < 1024; ++i) {
    x.push_back(static_cast<float>(i) / 512.0f - 1.0f);
    y.push_back(std::sin(3.0f * x.back()));
  }
  sk::Model<Network, sk::Shape<1>, sk::Cpu> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(sk::data::from_tensors(x, y), {.epochs = 20, .batch = 32});

  const double first = history.epochs().front().training.loss, last = history.back().training.loss;
  std::printf("loss %.5f in the first epoch, %.5f in the last\n", first, last);
  return last < 0.1 * first ? 0 : 1;
}
