// SPDX-License-Identifier: Apache-2.0
// A layer of one's own on both devices: its loops are function objects over an index, which a GPU runs as kernels. An elementwise
// one is a function object alone, whose derivative the library forms at compile time: not a word of it changes.
#include <cmath>
#include <cstdio>

#include <skein/cuda.hpp>
namespace sk = skein;

// [quote layer]
/// y(i) = factor(i) * x(i), and the gradient of x, which is the same of dy.
struct ScaleValue {
  const float *factor, *x;
  float* y;
  long features;
  constexpr void operator()(long i) const { y[i] = factor[i % features] * x[i]; }
};
/// The gradient of a factor: one row of the kernel a feature, its samples in a fixed order, so the same bits in every run.
struct ScaleGradient {
  const float *x, *dy;
  float* gradient;
  long batch, features;
  constexpr void operator()(long feature) const {
    float total = 0;
    for (long s = 0; s < batch; ++s) total += dy[s * features + feature] * x[s * features + feature];
    gradient[feature] += total;
  }
};

/// y = scale * x, with one trained factor a feature. Features: a multiple of 16, so that rows have no gaps.
struct Scale {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {
        .output = in, .parameters = {{{"scale", {1, {in.last()}}, sk::Init::ones}}}, .flops = in.count(), .saves_input = true};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    static_assert(sk::sample_pitch(In::extents) == In::count);
    sk::cuda::for_each(f.batch * In::count, ScaleValue{f.parameters, f.x, f.y, In::count});
  }
  template <class In, class Frame> static void backward(Frame& f) {
    sk::cuda::for_each(In::count, ScaleGradient{f.x, f.dy, f.gradients, f.batch, In::count});
    if (f.dx) sk::cuda::for_each(f.batch * In::count, ScaleValue{f.parameters, f.dy, f.dx, In::count});
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

  sk::Model<Net, sk::Shape<1>, sk::Cuda> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(data, {.epochs = 30, .batch = 100, .progress = false});
  std::printf("%smean squared error %.6f -> %.6f\n", sk::summary(model).c_str(), history.losses().front(),
              history.losses().back());
  return history.losses().back() < 0.01 ? 0 : 1;
}
