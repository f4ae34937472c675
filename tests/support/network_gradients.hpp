// SPDX-License-Identifier: Apache-2.0
// A whole network in an executor, in double: its gradient is that of finite differences, whatever the threads and the order of
// the work.
//
//     support::check_gradient<nn::Sequential<Linear<5>, Tanh>, sk::Shape<4>>();
#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/loss/mse.hpp>

#include "larger.hpp"

namespace support {

namespace sk = skein;
namespace nn = skein::nn;

using Doubles = sk::BatchView<double>;

template <class Model> struct Data {
  static constexpr long in = sk::sample_pitch(Model::input::extents), out = sk::sample_pitch(Model::output_extents);
  std::vector<double> x, y;
  Doubles batch;
  explicit Data(long n) : x(static_cast<std::size_t>(n * in)), y(static_cast<std::size_t>(n * out)) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = sk::random_uniform(1, 1, i) - 0.5;
    batch = {x.data(), in, nullptr, y.data(), out, n};
  }
  Doubles part(long begin, long end) const { return batch.part(begin, end); }
};

template <class Net, class Input> using Double = sk::Model<Net, Input, sk::Cpu, double>;

template <class Model> std::vector<double> gradient(Model& model, const Doubles& batch, sk::ExecutorOptions options) {
  options.capacity = std::max(1L, batch.count);
  sk::Executor executor{model, nn::Mse{}, options};
  executor.forward_backward(batch);
  return {model.gradients().begin(), model.gradients().end()};
}

template <class Net, class Input> void check_gradient(bool couples = false) {
  using Model = Double<Net, Input>;
  Model model{sk::Seed{5}};
  Data<Model> data(7);
  sk::Executor executor{model, nn::Mse{}, {.capacity = 7, .execution = sk::Execution::layer_wise, .threads = 1}};
  executor.forward_backward(data.batch);
  const std::vector<double> g(model.gradients().begin(), model.gradients().end());
  double norm = 0, error = 0;
  for (const sk::plan::Entry& e : Model::program.parameters())
    for (long row = 0; row < e.stored / sk::row_pitch(e.extents.last()); ++row)
      for (long c = 0; c < sk::row_pitch(e.extents.last()); ++c) {
        const std::size_t i = static_cast<std::size_t>(e.offset + row * sk::row_pitch(e.extents.last()) + c);
        if (c >= e.extents.last()) {
          REQUIRE(g[i] == 0);  // gaps stay zero
          continue;
        }
        const double p = model.parameters()[i], h = 1e-5;
        model.modify()[i] = p + h;
        const double up = executor.forward_backward(data.batch).mean();
        model.modify()[i] = p - h;
        const double down = executor.forward_backward(data.batch).mean();
        model.modify()[i] = p;
        const double d = (up - down) / (2 * h) - g[i];
        error += d * d;
        norm += g[i] * g[i];
      }
  REQUIRE(norm > 0);
  CHECK(std::sqrt(error / norm) < 1e-8);

  for (int threads : {1, 2, 3})
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      if (couples && execution == sk::Execution::depth_first) continue;
      const auto other = gradient(model, data.batch, {.execution = execution, .block = 2, .threads = threads});
      double worst = 0;
      for (std::size_t i = 0; i < g.size(); ++i) worst = support::larger(worst, other[i] - g[i]);
      INFO(threads << " threads, " << (execution == sk::Execution::depth_first ? "depth-first" : "layer by layer"));
      CHECK(worst < 1e-13);
    }
}

}  // namespace support
