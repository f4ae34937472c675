// SPDX-License-Identifier: Apache-2.0
// What Reproducible must do on any communicator of the host.
#pragma once
#include <skein/nn/conv2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/parallel/data/reproducible.hpp>

#include "shard_cases.hpp"

namespace reproducible_cases {

namespace sk = skein;
namespace nn = skein::nn;
using Net = nn::Sequential<nn::Conv2d<5, sk::Kernel<3>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<20>, nn::Relu,
                           nn::Dropout<sk::Rate<1, 4>>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<6, 6, 1>>;
/// In double a norm that is added up in another order shows in the weights.
using Wide = nn::Sequential<nn::Flatten, nn::Linear<20>, nn::Relu, nn::Linear<3>>;

/// Uneven batches, of which the last has fewer samples than there are shards.
template <class Policy> auto layer_wise(const Policy& policy, int threads) {
  return shard_cases::train<Net>(
      policy, {.epochs = 2, .batch = 19, .threads = threads, .compute = {.execution = sk::Execution::layer_wise}});
}
/// The other executor; several batches a step; clipping.
template <class Policy> auto clipped(const Policy& policy, int threads) {
  return shard_cases::train<Wide, double>(
      policy, {.epochs = 2, .batch = 11, .clip_norm = 0.05, .threads = threads, .step = {.accumulate = 3}});
}

/// Every rank throws the same sentence.
template <class Comm> void refuses_more_ranks(Comm& world) {
  std::string message;
  try {
    sk::parallel::DataParallel{world, sk::parallel::Reproducible<5>{}}.bind(sk::parallel::Replica<float, sk::Cpu>{}).start();
  } catch (const sk::ArgumentError& e) { message = e.what(); }
  RANK_CHECK(message.find("Reproducible<5>: 6 ranks have 5 virtual shards to share") != std::string::npos);
}

}  // namespace reproducible_cases
