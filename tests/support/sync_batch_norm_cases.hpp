// SPDX-License-Identifier: Apache-2.0
// What SyncBatchNorm must do on any communicator of the host.
#pragma once
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>

#include "shard_cases.hpp"

namespace sync_batch_norm_cases {

namespace sk = skein;
namespace nn = skein::nn;
using Net = nn::Sequential<nn::Conv2d<5, sk::Kernel<3>>, nn::BatchNorm<>, nn::Relu, nn::Flatten, nn::Linear<12>, nn::BatchNorm<>,
                           nn::Relu, nn::Linear<3>>;

/// Its statistics are more doubles than the workers of a rank exchange at once.
using Wide = nn::Sequential<nn::Flatten, nn::Linear<2048>, nn::BatchNorm<>, nn::Relu, nn::Linear<3>>;

template <class Network = Net, class Policy> auto train(const Policy& policy, int threads) {
  // The last batch has two samples: ranks without any, and ranks with one.
  return shard_cases::train<Network, double>(policy, {.epochs = 3, .batch = 59, .threads = threads});
}

/// Weights, losses and running statistics are those of one rank with the whole batches.
template <class Network = Net, class Comm> void agrees_with_one_rank(Comm& world, int threads) {
  const auto all = train<Network>(sk::parallel::DataParallel{world, {.bucket_bytes = 1}, sk::parallel::SyncBatchNorm{}}, threads);
  shard_cases::require_close(all, train<Network>(sk::parallel::SingleProcess{}, 1), 1e-9);
}

}  // namespace sync_batch_norm_cases
