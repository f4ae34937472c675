// SPDX-License-Identifier: Apache-2.0
// Layer by layer: each worker takes its part of the whole batch through all layers and back. The gradients of a layer are final
// as soon as all workers have left it, from the back of the network on, while backward goes on in front of it.
#pragma once
#include "slice_pass.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Forward, loss and backward of this worker's part.
template <class Pass> void run_layer_wise(Pass& pass, typename Pass::State& s, const Worker& w, const typename Pass::View& batch,
                                          const PassCall& call) {
  const auto [lo, hi] = w.slice(batch.count);
  s.run.context.first = lo;
  s.run.context.total = batch.count;
  s.run.context.global_total = call.global_count;
  s.run.context.accumulate = call.accumulate;
  pass.step(s, batch, lo, hi, call);
}

/// Forward and loss of this worker's part.
template <class Pass>
void evaluate_layer_wise(Pass& pass, typename Pass::State& s, const Worker& w, const typename Pass::View& batch) {
  const auto [lo, hi] = w.slice(batch.count);
  s.run.context.first = lo;
  s.run.context.total = batch.count;
  pass.forward_loss(s, batch, lo, hi, nullptr, 1);
}

}  // namespace skein::inline SKEIN_ABI::nn
