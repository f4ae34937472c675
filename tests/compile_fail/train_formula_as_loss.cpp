// expect: becomes a loss in nn::OwnLoss: Trainer{model, nn::OwnLoss{formula}, optimizer}
// SPDX-License-Identifier: Apache-2.0
#include <skein/skein.hpp>

namespace sk = skein;
namespace nn = sk::nn;

struct Formula {
  template <class T> constexpr T operator()(T output, T target) const { return abs(output - target); }
};

void f(const sk::data::InMemory<>& rows) {  // the whole of a first program: nothing follows the sentence
  sk::Model<nn::Sequential<nn::Linear<8>, nn::Relu, nn::Linear<1>>, sk::Shape<4>> model;
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, nn::OwnLoss{Formula{}}, sk::optim::Adam{}};
#else
  sk::Trainer trainer{model, Formula{}, sk::optim::Adam{}};
#endif
  trainer.fit(rows, {.epochs = 1, .batch = 32});
  trainer.evaluate(rows);
  trainer.save("model.skein");
}
