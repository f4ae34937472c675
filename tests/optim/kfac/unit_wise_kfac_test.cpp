// SPDX-License-Identifier: Apache-2.0
// Kfac{.unit_wise = true}: the blocks of scales and shifts beside plain loops over samples and pixels, and the step that is taken
// with them beside a direct solve; for each normalisation, alone and as part of what it is fused with.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/rms_norm.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/train_step.hpp>

#include "../../support/larger.hpp"
#include "../../support/naive_curvature.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;
std::size_t at(long i) { return static_cast<std::size_t>(i); }
double wave(long i, double a) { return std::sin(a * static_cast<double>(i + 1) + 0.3); }

/// What stands around a normalisation whose input is a matrix of the pixels' values by the first layer's weights.
struct Around {
  bool tanh = false;    ///< in front of it
  bool relu = false;    ///< behind it
  bool joined = false;  ///< after a Tanh of the network's input, to which its output is added, with a ReLU behind
  long groups = 0;      ///< a mean and a deviation of each group of a sample's channels; 0: of each channel of the batch
  bool of_pixels = false, centered = true;
};

/// `samples` of `pixels` places with C channels each, in loops: y = (z - mean) / deviation * weight + bias of z = x W.
template <class Network, long Pixels, long C> struct Plain {
  static constexpr long N = 6;
  using In = std::conditional_t<Pixels == 1, sk::Shape<C>, sk::Shape<2, Pixels / 2, C>>;
  using Model = sk::Model<Network, In, sk::Cpu, double>;
  static constexpr long pitch = sk::sample_pitch(In::extents), row = sk::row_pitch(C);
  Values x, y;
  Plain() : x(at(N * pitch)), y(at(N * pitch)) {
    for (long i = 0; i < N * pitch; ++i)
      if (i % pitch < Pixels * C) x[at(i)] = wave(i, 0.7), y[at(i)] = wave(i, 1.9);
  }
  sk::BatchView<double> view() const { return {x.data(), pitch, nullptr, y.data(), pitch, N}; }
  static void set_scales(Model& model) {
    const auto lease = model.modify();
    for (long c = 0; c < C; ++c) lease.data()[C * row + c] = 1 + 0.3 * wave(c, 2.1);
    if (Model::sizes.entries > 2)
      for (long c = 0; c < C; ++c) lease.data()[(C + 1) * row + c] = 0.2 * wave(c, 1.3);
  }
  /// (N, 2, C): the gradients of weight and bias that each sample's part of the mean loss has.
  Values gradients(const Values& weights, const Around& around, double epsilon) const {
    Values z(at(N * Pixels * C)), hat(z.size()), d(at(N * 2 * C));
    const auto of_x = [&](long n, long p, long c) { return x[at(n * pitch + p * C + c)]; };
    const auto of_input = [&](long n, long p, long c) { return around.joined ? std::tanh(of_x(n, p, c)) : of_x(n, p, c); };
    for (long i = 0; i < N * Pixels * C; ++i) {
      for (long k = 0; k < C; ++k) z[at(i)] += of_input(i / C / Pixels, i / C % Pixels, k) * weights[at(k * row + i % C)];
      if (around.tanh) z[at(i)] = std::tanh(z[at(i)]);
    }
    for (long i = 0; i < N * Pixels * C; ++i) {
      double mean = 0, square = 0, count = 0;
      for (long j = 0; j < N * Pixels * C; ++j) {
        const bool same_sample = i / C / Pixels == j / C / Pixels, same_pixel = i / C == j / C;
        const bool same_group = around.groups > 0 && i % C * around.groups / C == j % C * around.groups / C;
        const bool together = around.groups == 0 ? i % C == j % C : same_group && (around.of_pixels ? same_pixel : same_sample);
        if (together) mean += z[at(j)], square += z[at(j)] * z[at(j)], count += 1;
      }
      mean = around.centered ? mean / count : 0;
      hat[at(i)] = (z[at(i)] - mean) / std::sqrt(square / count - mean * mean + epsilon);
    }
    for (long i = 0; i < N * Pixels * C; ++i) {
      const long n = i / C / Pixels, p = i / C % Pixels, c = i % C;
      double out = hat[at(i)] * weights[at(C * row + c)] + (around.centered ? weights[at((C + 1) * row + c)] : 0);
      if (around.joined) out += of_x(n, p, c);
      const bool passed = !(around.relu || around.joined) || out > 0;
      const double slope = passed ? 2 * (out - y[at(n * pitch + p * C + c)]) / static_cast<double>(N * Pixels * C) : 0;
      d[at((n * 2) * C + c)] += slope * hat[at(i)];
      d[at((n * 2 + 1) * C + c)] += slope;
    }
    return d;
  }
};

/// The second layer with factors is the normalisation.
template <class Network, long Pixels, long C> void agrees(const Around& around, double epsilon = 1e-5) {
  using Case = Plain<Network, Pixels, C>;
  const Case plain;
  const double damping = 0.01;
  const long rows = around.centered ? 2 : 1;
  for (const auto how : {optim::KfacInverse::eigen, optim::KfacInverse::cholesky})
    for (const int threads : {1, 3}) {
      typename Case::Model model{sk::Seed{3}};
      Case::set_scales(model);
      const Values weights{std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
      sk::train::TrainStep step{model, nn::Mse{},
                                optim::chain(optim::Kfac{.damping = damping,
                                                         .factor_every = 1,
                                                         .inverse_every = 1,
                                                         .factor_decay = 0,
                                                         .kl_clip = 0,
                                                         .inverse = how,
                                                         .unit_wise = true},
                                             optim::Sgd{.lr = 1}),
                                sk::parallel::SingleProcess{}};
      step.reserve({.capacity = Case::N, .threads = threads});
      step.step(plain.view());
      const Values d = plain.gradients(weights, around, epsilon);
      REQUIRE(step.curvature().layers() == 2);
      const auto blocks = step.curvature().factor_a(1);
      REQUIRE(blocks.size() == at(C * rows * rows));
      REQUIRE(step.curvature().factor_g(1).empty());
      double large = 0;
      for (long c = 0; c < C; ++c) {
        Values block(at(rows * rows)), gradient(at(rows));
        for (long n = 0; n < Case::N; ++n)
          for (long i = 0; i < rows; ++i) {
            gradient[at(i)] += d[at((n * 2 + i) * C + c)];
            for (long j = 0; j < rows; ++j)
              block[at(i * rows + j)] += d[at((n * 2 + i) * C + c)] * d[at((n * 2 + j) * C + c)] / static_cast<double>(Case::N);
          }
        for (long i = 0; i < rows * rows; ++i) {
          CHECK(blocks[at(c * rows * rows + i)] == Approx(block[at(i)]).epsilon(1e-9).margin(1e-15));
          large = std::max(large, std::abs(block[at(i)]));
        }
        for (long i = 0; i < rows; ++i) block[at(i * rows + i)] += damping;
        const Values solved = test::solve_dense(block, gradient);
        for (long i = 0; i < rows; ++i) {
          const std::size_t k = at((C + i) * Case::row + c);
          CHECK(weights[k] - std::as_const(model).parameters()[k] == Approx(solved[at(i)]).epsilon(1e-9).margin(1e-13));
        }
      }
      CHECK(large > 1e-6);
    }
}
template <int C> using Pixelwise = nn::Conv2d<C, sk::Kernel<1>, sk::NoBias>;
template <int C> using Indirect = nn::Conv2d<C, sk::Kernel<1>, sk::Dilation<2>, sk::NoBias>;  // leaves its gradient in its output
template <int C> using Flat = nn::Linear<C, sk::NoBias>;
}  // namespace

TEST_CASE("Unit-wise blocks of a normalisation are those of each sample's own gradient, and its step is the direct solve's",
          "[optim]") {
  SECTION("BatchNorm") {
    agrees<nn::Sequential<Pixelwise<4>, nn::Tanh, nn::BatchNorm<>>, 6, 4>({.tanh = true});
    agrees<nn::Sequential<Pixelwise<5>, nn::Tanh, nn::BatchNorm<>, nn::Relu>, 6, 5>({.tanh = true, .relu = true});
    agrees<nn::Sequential<Flat<5>, nn::Tanh, nn::BatchNorm<>>, 1, 5>({.tanh = true});
    agrees<nn::Sequential<Flat<5>, nn::Tanh, nn::BatchNorm<>, nn::Relu>, 1, 5>({.tanh = true, .relu = true});
  }
  SECTION("BatchNorm that is fused with a convolution, and with the sum and the ReLU of a residual block") {
    agrees<nn::Sequential<Pixelwise<4>, nn::BatchNorm<>>, 6, 4>({});
    agrees<nn::Sequential<Pixelwise<5>, nn::BatchNorm<>, nn::Relu>, 6, 5>({.relu = true});
    agrees<nn::Sequential<Pixelwise<16>, nn::BatchNorm<>, nn::Relu>, 8, 16>({.relu = true});
    agrees<nn::Sequential<Indirect<5>, nn::BatchNorm<>>, 6, 5>({});
    agrees<nn::Sequential<Indirect<5>, nn::BatchNorm<>, nn::Relu>, 6, 5>({.relu = true});
    agrees<nn::Sequential<nn::Residual<nn::Sequential<nn::Tanh, Pixelwise<8>, nn::BatchNorm<>>, nn::Identity>, nn::Relu>, 6, 8>(
        {.joined = true});
    agrees<nn::Sequential<nn::Residual<nn::Sequential<nn::Tanh, Indirect<8>, nn::BatchNorm<>>, nn::Identity>, nn::Relu>, 6, 8>(
        {.joined = true});
  }
  SECTION("of samples by themselves") {
    agrees<nn::Sequential<Pixelwise<4>, nn::Tanh, nn::LayerNorm<>>, 6, 4>({.tanh = true, .groups = 1, .of_pixels = true});
    agrees<nn::Sequential<Flat<5>, nn::LayerNorm<>, nn::Relu>, 1, 5>({.relu = true, .groups = 1});
    agrees<nn::Sequential<Pixelwise<6>, nn::Tanh, nn::GroupNorm<3>>, 6, 6>({.tanh = true, .groups = 3});
    agrees<nn::Sequential<Pixelwise<5>, nn::RmsNorm<sk::Epsilon<1, 100000>>>, 6, 5>(
        {.groups = 1, .of_pixels = true, .centered = false});
    agrees<nn::Sequential<Flat<5>, nn::RmsNorm<sk::Epsilon<1, 100000>>>, 1, 5>({.groups = 1, .centered = false});
  }
}

namespace {
template <int K> using Same = nn::Conv2d<16, sk::Kernel<K>, sk::Padding<K / 2>>;
/// The body of a residual block; fused, unless an Identity stands between what would be.
template <class... Between> using Body =
    nn::Sequential<Same<3>, Between..., nn::BatchNorm<>, Between..., nn::Relu, Same<3>, Between..., nn::BatchNorm<>>;
template <class... Between> using Blocks =
    nn::Sequential<Same<3>, Between..., nn::Residual<Body<Between...>>, Between..., nn::Relu, nn::Residual<Body<Between...>>,
                   Between..., nn::Relu, nn::GlobalAvgPool, nn::Linear<3>>;

/// The weights after a step.
template <class Network> Values stepped(int threads) {
  constexpr long samples = 5, values = 6 * 6 * 2;
  sk::Model<Network, sk::Shape<6, 6, 2>, sk::Cpu, double> model{sk::Seed{3}};
  sk::train::TrainStep step{model, nn::Mse{},
                            optim::chain(optim::Kfac{.factor_decay = 0, .kl_clip = 0, .unit_wise = true}, optim::Sgd{.lr = 0.1f}),
                            sk::parallel::SingleProcess{}};
  step.reserve({.capacity = samples, .threads = threads});
  Values x(at(samples * values)), y(at(samples * sk::sample_pitch(sk::Extents{1, {3}})));
  for (long i = 0; i < samples * values; ++i) x[at(i)] = wave(i, 0.7);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = wave(static_cast<long>(i), 1.9);
  step.step(sk::BatchView<double>{x.data(), values, nullptr, y.data(), sk::sample_pitch(sk::Extents{1, {3}}), samples});
  const auto parameters = std::as_const(model).parameters();
  return {parameters.begin(), parameters.end()};
}
}  // namespace

TEST_CASE("Unit-wise blocks of a sample leave the gradients of the others alone, also in a chain of fused residual blocks",
          "[optim]") {
  for (const int threads : {1, 2}) {
    const Values fused = stepped<Blocks<>>(threads), apart = stepped<Blocks<nn::Identity>>(threads);
    REQUIRE(fused.size() == apart.size());
    double most = 0;
    for (std::size_t i = 0; i < fused.size(); ++i) most = support::larger(most, fused[i] - apart[i]);
    CHECK(most < 1e-11);
  }
}
