// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>
#include <thread>

#include <skein/device/cuda/captured_graph.hpp>
#include <skein/device/cuda/memory.hpp>
#include <skein/nn/log_softmax.hpp>
#include <skein/ops/cuda/row_softmax.hpp>

#include "support/device_harness.hpp"

namespace nn = skein::nn;
using skein::Cuda;
using skein::Shape;
using support::agree;

namespace {
template <class L, class In> void agrees() {
  for (const long batch : {0L, 1L, 3L, 7L}) {
    agree<L, In, float>({.batch = batch, .roundings = support::Roundings::function});
    agree<L, In, double>({.batch = batch, .roundings = support::Roundings::function});
  }
  agree<L, In, float>({.batch = 2, .wants_dx = false});
}
}  // namespace

TEST_CASE("softmax and log-softmax on Cuda are those of the Cpu", "[cuda]") {
  agrees<nn::Softmax, Shape<10>>();
  agrees<nn::Softmax, Shape<1>>();
  agrees<nn::Softmax, Shape<3, 4, 5>>();
  agrees<nn::LogSoftmax, Shape<10>>();
  agrees<nn::LogSoftmax, Shape<33>>();
  agrees<nn::LogSoftmax, Shape<2, 3, 4>>();
}
TEST_CASE("softmax on Cuda does not overflow", "[cuda]") {
  support::LayerHarness<nn::Softmax, Shape<10>, float, Cuda> h(3);
  h.set_x([](long b, long i) { return 1000.0 * static_cast<double>(b - 1) + static_cast<double>(i); });
  h.forward();
  for (long b = 0; b < 3; ++b)
    for (long i = 0; i < 10; ++i) CHECK(h.y_at(b, i) == Approx(h.y_at(1, i)));
}
TEST_CASE("a thread that has prepared a softmax may capture it at once", "[cuda]") {
  const skein::Arena<float, Cuda> x(30);
  skein::Arena<float, Cuda> y(30);
  skein::cuda::synchronize(Cuda{0});
  std::string said;
  std::thread([&] {
    try {
      typename support::LayerHarness<nn::Softmax, Shape<10>, float, Cuda>::FrameType frame;
      nn::Softmax::prepare<Shape<10>>(frame);
      skein::cuda::CapturedGraph::capture([&] { skein::ops::row_softmax<Cuda, false>(3, 10, 10, x.data(), y.data()); }).launch();
      skein::cuda::synchronize(Cuda{0});
    } catch (const skein::Error& e) { said = e.what(); }
  }).join();
  CHECK(said == "");
  std::vector<float> there(30);
  skein::Copy<skein::Cpu, Cuda>::run(there.data(), y.data(), 30 * sizeof(float));
  for (const float value : there) CHECK(value == Approx(0.1));
}
