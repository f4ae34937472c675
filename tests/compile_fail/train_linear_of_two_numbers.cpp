// expect after the compiler's own: Linear<16> has its outputs alone, since its inputs come from the layer before
// SPDX-License-Identifier: Apache-2.0
#include <skein/skein.hpp>

namespace sk = skein;
namespace nn = sk::nn;

#ifdef SKEIN_TWIN
struct Net : nn::Sequential<nn::Flatten, nn::Linear<10>> {};
#else
struct Net : nn::Sequential<nn::Flatten, nn::Linear<784, 10>> {};
#endif

void f(const sk::data::InMemory<>& images) {  // the whole of a first program: nothing follows the sentence
  sk::Model<Net, sk::Shape<28, 28, 1>> model;
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(images, {.epochs = 1, .batch = 32});
  trainer.evaluate(images);
}
