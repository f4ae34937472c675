// SPDX-License-Identifier: Apache-2.0
// Two runs compared by a hash of their weights: on the same machine the same program has the same bits, whenever it runs.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::BatchNorm<>, sk::nn::Relu, sk::nn::Linear<10>>;
using Model = sk::Model<Net, sk::Shape<28, 28, 1>>;

// [quote hash]
std::uint64_t hash_of_weights(const Model& model) {
  const auto parameters = model.parameters(), statistics = model.buffers();  // spans of floats; BatchNorm has statistics
  sk::Fnv1a hash;
  for (const auto& values : {parameters, statistics}) hash.add(sk::hash_bytes(values.data, values.size * sizeof(float)));
  return hash.value();
}
// [end]

std::uint64_t run(sk::Seed seed) {
  Model model{seed};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
  trainer.fit(sk::data::synthetic_digits(500, sk::Seed{1}), {.epochs = 2, .batch = 50, .progress = false});
  return hash_of_weights(model);
}

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const std::uint64_t first = run(sk::Seed{1});
    std::printf("the same seed: %s weights\n", run(sk::Seed{1}) == first ? "the same" : "other");
    std::printf("another seed: %s weights\n", run(sk::Seed{2}) == first ? "the same" : "other");
  });
}
