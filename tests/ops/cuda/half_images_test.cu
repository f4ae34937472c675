// SPDX-License-Identifier: Apache-2.0
// Pooling, batch normalisation and softmax on images in bf16 and fp16: as in float on the same values, but for the rounding of
// what is written. Parameters and statistics are floats.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/core/half.hpp>
#include <skein/device/cuda/memory.hpp>
#include <skein/nn/layer.hpp>
#include <skein/ops/cuda/batch_norm.hpp>
#include <skein/ops/cuda/pool2d.hpp>
#include <skein/ops/cuda/row_softmax.hpp>

#include "support/on_device.hpp"

namespace sk = skein;
namespace ops = skein::ops;
using sk::Cpu;
using sk::Cuda;
using support::OnDevice;

namespace {
template <class Half> struct Pair {  ///< the same values in 16 bits on the device, in float on the host
  std::vector<float> here;
  OnDevice<Half> there;
  explicit Pair(long n, double step, double add = 0) : Pair(make(n, step, add)) {}

 private:
  static std::vector<Half> make(long n, double step, double add) {
    std::vector<Half> v;
    for (long i = 0; i < n; ++i) v.push_back(static_cast<Half>(std::sin(step * static_cast<double>(i + 1)) + add));
    return v;
  }
  explicit Pair(const std::vector<Half>& v) : here(v.begin(), v.end()), there(v) {}
};
template <class Half> void near(const OnDevice<Half>& there, const std::vector<float>& here, double tolerance) {
  const std::vector<Half> got = there.values();
  double worst = 0, size = 1e-30;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const double d = std::abs(static_cast<double>(static_cast<float>(got[i])) - static_cast<double>(here[i]));
    worst = std::isnan(d) ? 1e300 : std::max(worst, d);
    size = std::max(size, std::abs(static_cast<double>(here[i])));
  }
  CHECK(worst <= tolerance * size);
}

template <class Half> void pools(double tolerance, int channels) {
  const ops::Pool2dGeometry g{7, 6, channels, 3, 2, 1};
  const long batch = 3;
  Pair<Half> x(batch * g.in_count(), 0.7), dy(batch * g.out_count(), 1.3), y(batch * g.out_count(), 1),
      dx(batch * g.in_count(), 1);
  std::vector<ops::ArgMax> winners(static_cast<std::size_t>(batch * g.out_count()));
  OnDevice<ops::ArgMax> device_winners(winners);
  ops::max_pool2d_forward<Cpu>(g, batch, x.here.data(), y.here.data(), winners.data());
  ops::max_pool2d_forward<Cuda>(g, batch, x.there.data(), y.there.data(), device_winners.data());
  near(y.there, y.here, 0);  // nothing is rounded
  CHECK(device_winners.values() == winners);
  ops::max_pool2d_backward<Cpu>(g, batch, dy.here.data(), winners.data(), dx.here.data());
  ops::max_pool2d_backward<Cuda>(g, batch, dy.there.data(), device_winners.data(), dx.there.data());
  near(dx.there, dx.here, tolerance);
  ops::average_pool2d_forward<Cpu>(g, batch, x.here.data(), y.here.data());
  ops::average_pool2d_forward<Cuda>(g, batch, x.there.data(), y.there.data());
  near(y.there, y.here, tolerance);
  ops::average_pool2d_backward<Cpu>(g, batch, dy.here.data(), dx.here.data());
  ops::average_pool2d_backward<Cuda>(g, batch, dy.there.data(), dx.there.data());
  near(dx.there, dx.here, tolerance);
}

template <class Half> void softmaxes(double tolerance) {
  Pair<Half> x(5 * 16, 0.7), y(5 * 16, 0), dy(5 * 16, 1.1), dx(5 * 16, 0);
  ops::row_softmax<Cpu, true>(5, 10, 16, x.here.data(), y.here.data());
  ops::row_softmax<Cuda, true>(5, 10, 16, x.there.data(), y.there.data());
  near(y.there, y.here, tolerance);
  ops::row_softmax_backward<Cpu, true>(5, 10, 16, y.here.data(), dy.here.data(), dx.here.data());
  ops::row_softmax_backward<Cuda, true>(5, 10, 16, y.there.data(), dy.there.data(), dx.there.data());
  near(dx.there, dx.here, 2 * tolerance);
}

template <class Half, bool Rectifies, int channels> void normalizes(double tolerance) {
  const long samples = 4, pixels = 9, n = samples * pixels * channels;
  Pair<Half> x(n, 0.7, 0.5), y(n, 0), dy(n, 1.3), dx(n, 0);
  std::vector<float> ones(channels, 1.5f), zeros(channels, 0.1f), statistics[6],
      workspace(static_cast<std::size_t>(ops::cpu::batch_norm_workspace(channels)));
  for (auto& s : statistics) s.assign(channels, 0.25f);
  OnDevice<float> weight(ones), bias(zeros), d0(statistics[0]), d1(statistics[1]), d2(statistics[2]), d3(statistics[3]),
      d4(statistics[4]), d5(statistics[5]);
  ops::BatchNormCall<float> h;
  h.samples = samples, h.pixels = pixels, h.epsilon = 1e-3, h.momentum = 0.1;
  ops::BatchNormCall<Half, float> d;
  d.samples = samples, d.pixels = pixels, d.epsilon = 1e-3, d.momentum = 0.1, d.has_relu = Rectifies;
  h.x = x.here.data(), h.y = y.here.data(), h.dy = dy.here.data(), h.dx = dx.here.data();
  d.x = x.there.data(), d.y = y.there.data(), d.dy = dy.there.data(), d.dx = dx.there.data();
  h.weight = ones.data(), h.bias = zeros.data(), d.weight = weight.data(), d.bias = bias.data();
  h.running_mean = statistics[0].data(), h.running_variance = statistics[1].data(), h.mean = statistics[2].data(),
  h.inverse = statistics[3].data(), h.dweight = statistics[4].data(), h.dbias = statistics[5].data(),
  h.workspace = workspace.data();
  d.running_mean = d0.data(), d.running_variance = d1.data(), d.mean = d2.data(), d.inverse = d3.data(), d.dweight = d4.data(),
  d.dbias = d5.data();
  sk::nn::Context<float, Cpu> here;
  sk::nn::Context<float, Cuda> there;
  ops::BatchNormKernels<Cpu>::forward<channels, channels>(h, here);
  ops::BatchNormKernels<Cuda>::forward<channels, channels>(d, there);
  if (Rectifies)
    for (std::size_t i = 0; i < y.here.size(); ++i)
      if (y.here[i] <= 0) y.here[i] = dy.here[i] = 0;
  near(y.there, y.here, tolerance);
  ops::BatchNormKernels<Cpu>::backward<channels, channels>(h, here);
  ops::BatchNormKernels<Cuda>::backward<channels, channels>(d, there);
  near(dx.there, dx.here, tolerance);
  const OnDevice<float>* all[] = {&d0, &d1, &d2, &d3, &d4, &d5};
  for (int k = 0; k < 6; ++k) near(*all[k], statistics[k], 1e-5);
}
}  // namespace

TEST_CASE("pooling, normalisation and softmax take images in 16 bits", "[cuda]") {
  for (const bool plain : {false, true}) {
    const sk::cuda::PlainKernels kernels(plain);
    for (const int channels : {5, 24}) {
      pools<sk::bf16>(1.0 / 256, channels);
      pools<sk::fp16>(1.0 / 2048, channels);
    }
    softmaxes<sk::bf16>(1.0 / 128);
    softmaxes<sk::fp16>(1.0 / 1024);
    normalizes<sk::bf16, false, 6>(1.0 / 128);
    normalizes<sk::bf16, true, 6>(1.0 / 128);
    normalizes<sk::fp16, false, 6>(1.0 / 1024);
    normalizes<sk::bf16, false, 24>(1.0 / 128);
    normalizes<sk::fp16, true, 24>(1.0 / 1024);
  }
}
