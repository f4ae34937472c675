// SPDX-License-Identifier: Apache-2.0
// A layer of one's own: a type that describes itself for an input, and whose forward and backward are tensor expressions: the
// same text for every device (04_own_layer.cu). An elementwise one is less: a function object, whose derivative the library forms
// at compile time.
#include <cmath>
#include <cstdio>

#include <skein/skein.hpp>
namespace sk = skein;

// [quote layer]
using namespace sk::literals;  // "scale"_p

/// y = scale * x, with one trained factor a feature.
struct Scale {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
  }
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
    f.dx() = f.dy() * f.parameter("scale"_p);
  }
};
// [end]

/// x / (1 + exp(-x)) (Ramachandran, Zoph, Le, 2017).
struct Swish {
  template <class T> constexpr T operator()(T x) const { return x * sigmoid(x); }
};

struct Net : sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Elementwise<Swish>, Scale, sk::nn::Linear<1>> {};

int main() {
  std::vector<float> x, y;
  for (int i = 0; i < 2000; ++i)
    x.push_back(-3 + 0.003f * static_cast<float>(i)), y.push_back(std::sin(x.back()) + 0.3f * x.back());
  const auto data = sk::data::from_tensors(x, y);

  sk::Model<Net, sk::Shape<1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(data, {.epochs = 30, .batch = 100, .progress = false});
  std::printf("%smean squared error %.6f -> %.6f\n", sk::summary(model).c_str(), history.losses().front(),
              history.losses().back());
  return history.losses().back() < 0.01 ? 0 : 1;
}
