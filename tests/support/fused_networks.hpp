// SPDX-License-Identifier: Apache-2.0
// A network whose layers are fused beside the same with an Identity between them, which keeps them apart: both must give the same
// outputs, gradients and buffers, in steps and in evaluation, for any number of workers.
#pragma once
#include <catch2/catch.hpp>

#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/summary.hpp>

#include "conv_cases.hpp"

namespace support {

/// Scattered samples and targets.
template <class In, class Scalar, long Outputs> class Batch {
 public:
  explicit Batch(long n) : n_(n), x_(static_cast<std::size_t>(n * pitch)), targets_(static_cast<std::size_t>(n * out)) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<Scalar>(scattered(static_cast<long>(i), 1));
    for (std::size_t i = 0; i < targets_.size(); ++i) targets_[i] = static_cast<Scalar>(scattered(static_cast<long>(i), 2));
  }
  skein::BatchView<Scalar> view() const { return {x_.data(), pitch, nullptr, targets_.data(), out, n_}; }

 private:
  static constexpr long pitch = skein::sample_pitch(In::extents), out = skein::row_pitch(Outputs);
  long n_;
  std::vector<Scalar> x_, targets_;
};

struct NetworkResult {
  std::vector<double> outputs, gradients, buffers, evaluated;
};

/// Two steps, the second with other weights, then evaluation.
template <class Network, class In, class Scalar> NetworkResult run_network(const skein::ExecutorOptions& options) {
  using Model = skein::Model<Network, In, skein::Cpu, Scalar>;
  Model model{skein::Seed{7}};
  skein::Executor executor(model, skein::nn::Mse{}, options);
  constexpr long width = Model::output_extents.count();
  const Batch<In, Scalar, width> batch(options.capacity);
  const auto outputs = [&](std::vector<double>& to) {
    to.insert(to.end(), executor.outputs(), executor.outputs() + options.capacity * skein::row_pitch(width));
  };
  NetworkResult r;
  for (int step = 0; step < 2; ++step) {
    executor.forward_backward(batch.view());
    outputs(r.outputs);
    for (Scalar g : model.gradients()) r.gradients.push_back(static_cast<double>(g));
    for (Scalar& p : model.modify()) p *= Scalar(0.9);
  }
  for (Scalar b : model.buffers()) r.buffers.push_back(static_cast<double>(b));
  executor.evaluate(batch.view());
  outputs(r.evaluated);
  return r;
}

template <class Fused, class Plain, class In, class Scalar> void agree_in(double tolerance) {
  const NetworkResult expected = run_network<Plain, In, Scalar>({.capacity = 11, .threads = 1});
  for (const int threads : {1, 2, 3}) {
    INFO("threads " << threads << ", bytes of a scalar " << sizeof(Scalar));
    const NetworkResult got = run_network<Fused, In, Scalar>({.capacity = 11, .threads = threads});
    CHECK(apart(got.outputs, expected.outputs) < tolerance);
    CHECK(apart(got.gradients, expected.gradients) < 10 * tolerance);
    CHECK(apart(got.buffers, expected.buffers) < tolerance);
    CHECK(apart(got.evaluated, expected.evaluated) < 10 * tolerance);
  }
}
/// The rewritten network has so many layers.
template <class Fused, class Plain, class In> void agree(int layers) {
  CHECK(skein::Model<Fused, In>::fused::size == layers);
  agree_in<Fused, Plain, In, float>(2e-6);
  agree_in<Fused, Plain, In, double>(1e-14);
}

}  // namespace support
