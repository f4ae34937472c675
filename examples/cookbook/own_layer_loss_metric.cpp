// SPDX-License-Identifier: Apache-2.0
// A layer, a loss and a metric of one's own, in one training.
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
namespace sk = skein;

// [quote parts]
using namespace sk::literals;  // "scale"_p

/// y = scale * x, with one trained factor for each feature.
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

/// log cosh(output - target): quadratic near 0, linear for outliers.
struct LogCosh {
  template <class T> constexpr T operator()(T output, T target) const {
    const T d = abs(output - target);
    return d + log1p(exp(-2 * d)) - 0.6931471805599453;
  }
};

/// The share of outputs that are within 0.1 of their target.
const sk::train::OwnMetric within{"within 0.1", [](std::span<const float> output, std::span<const float> target) {
                                    return std::abs(output[0] - target[0]) < 0.1f ? 1.0 : 0.0;
                                  }};
// [end]

struct Net : sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Tanh, Scale, sk::nn::Linear<1>> {};

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto x = sk::linspace(-1.0f, 1.0f, 2000);  // (2000)
    const sk::Tensor<float, 1> y = sin(3 * x);       // (2000)
    const auto points = sk::data::from_tensors(x, y);
    const auto [train, test] = sk::data::split(points, 0.8, sk::Seed{1});
    // [quote training]
    sk::Model<Net, sk::Shape<1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::OwnLoss{LogCosh{}}, sk::optim::Adam{.lr = 0.01f}};
    const sk::History history =
        trainer.fit(train, {.epochs = 10, .batch = 20, .validate = test, .metrics = {within}, .progress = false});
    // [end]
    std::printf("loss %.5f, within 0.1: %.2f\n", history.back().validation.loss, history.back().validation["within 0.1"]);
  });
}
