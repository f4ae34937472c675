// SPDX-License-Identifier: Apache-2.0
// What Reproducible, Sharded and SyncBatchNorm must do on any communicator of the host: written once, run over threads and over
// MPI.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "points.hpp"
#include "rank_check.hpp"

namespace shard_cases {

namespace sk = skein;
namespace nn = skein::nn;
using sk::parallel::DataParallel;

/// 61 images of 6 x 6: no batch and no number of ranks divides them.
struct Images : support::Points {
  Images() : support::Points(61, {3, {6, 6, 1}}) {}
};

template <class Scalar> struct Result {
  std::vector<double> losses;
  std::vector<Scalar> parameters, buffers;
  friend bool operator==(const Result&, const Result&) = default;
};

/// A fit over the images, and what it left.
template <class Network, class Scalar = float, class Policy, class Optimizer = sk::optim::Sgd>
Result<Scalar> train(const Policy& policy, sk::FitOptions options, Optimizer optimizer = {.lr = 0.1f, .momentum = 0.9}) {
  const Images images;
  const auto data = images.set();
  sk::Model<Network, sk::Shape<6, 6, 1>, sk::Cpu, Scalar> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer, policy};
  options.record_steps = true;
  options.progress = false;
  options.seed = sk::Seed{11};
  Result<Scalar> r;
  r.losses = trainer.fit(data, options).losses();
  r.parameters.assign(model.parameters().begin(), model.parameters().end());
  r.buffers.assign(model.buffers().begin(), model.buffers().end());
  return r;
}

template <class Scalar> void require_close(const Result<Scalar>& a, const Result<Scalar>& b, double tolerance) {
  RANK_CHECK(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) RANK_CHECK(a.losses[i] == Approx(b.losses[i]).margin(tolerance).epsilon(0));
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    RANK_CHECK(a.parameters[i] == Approx(b.parameters[i]).margin(tolerance).epsilon(0));
  for (std::size_t i = 0; i < a.buffers.size(); ++i)
    RANK_CHECK(a.buffers[i] == Approx(b.buffers[i]).margin(tolerance).epsilon(0));
}

}  // namespace shard_cases
