// SPDX-License-Identifier: Apache-2.0
// A layer of one's own: a type that describes itself for an input shape, and has forward and backward over the memory it is
// given. An elementwise one is less: a function object, whose derivative the library forms at compile time.
#include <cmath>
#include <cstdio>

#include <skein/skein.hpp>
namespace sk = skein;

// [quote layer]
/// y = scale * x, with one trained factor a feature.
struct Scale {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {
        .output = in, .parameters = {{{"scale", {1, {in.last()}}, sk::Init::ones}}}, .flops = in.count(), .saves_input = true};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long features = In::extents.last(), pitch = sk::sample_pitch(In::extents);
    for (long s = 0; s < f.batch; ++s)
      for (long i = 0; i < In::count; ++i) f.y[s * pitch + i] = f.parameters[i % features] * f.x[s * pitch + i];
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr long features = In::extents.last(), pitch = sk::sample_pitch(In::extents);
    for (long s = 0; s < f.batch; ++s)
      for (long i = 0; i < In::count; ++i) {
        f.gradients[i % features] += f.dy[s * pitch + i] * f.x[s * pitch + i];
        if (f.dx) f.dx[s * pitch + i] = f.dy[s * pitch + i] * f.parameters[i % features];
      }
  }
};
// [end]

/// x / (1 + exp(-x)) (Ramachandran, Zoph, Le, 2017).
struct Swish {
  template <class T> constexpr T operator()(T x) const {
    using std::exp;
    return x / (T(1) + exp(-x));
  }
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
