// SPDX-License-Identifier: Apache-2.0
// PipelineCall: what a pipeline does with a batch.
#pragma once
#include <cstdint>

#include "../../nn/layer.hpp"
#include "../../nn/loss/loss.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// What is done with a batch.
struct PipelineCall {
  long size = 1;  // of a micro-batch
  nn::Phase phase = nn::Phase::training;
  std::uint64_t key = 0;
  bool accumulate = false, update = true;
  bool look = false;  // for gradients that are not finite: with one, nothing is updated
  double lr = 0, clip = 0;
  double loss_scale = 1;       // another factor of the loss's gradient
  double expected_weight = 1;  // weight that the gradients are divided by as they are made
  std::int64_t step = 0;       // updates before
  nn::LossSums carried{};      // of the batches that are accumulated
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
