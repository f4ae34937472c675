// SPDX-License-Identifier: Apache-2.0
// Depth-first: each worker takes one block of its samples after the other through all layers and back, so that the activations
// of a small network stay in the cache. All gradients are final at the end.
#pragma once
#include <algorithm>

#include "../../plan/program.hpp"
#include "slice_pass.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Forward, loss and backward of the samples of `slice`, in even blocks of at most the memory's capacity; one, if it is empty.
template <class Pass> void run_depth_first(Pass& pass, typename Pass::State& s, long capacity, plan::Range slice,
                                           const typename Pass::View& batch, const PassCall& call) {
  const long n = slice.end - slice.begin, count = n > capacity ? (n + capacity - 1) / capacity : 1;
  s.run.context.first = 0;
  for (long b = 0, from = slice.begin, to; b < count; ++b, from = to) {
    to = b + 1 < count ? slice.begin + n * (b + 1) / count : slice.end;
    s.run.context.total = to - from;
    s.run.context.accumulate = call.accumulate || b > 0;
    pass.step(s, batch, from, to, call);
  }
}

/// Forward and loss of the same, in blocks of the capacity.
template <class Pass> void evaluate_depth_first(Pass& pass, typename Pass::State& s, long capacity, plan::Range slice,
                                                const typename Pass::View& batch) {
  s.run.context.first = 0;
  for (long at = slice.begin; at < slice.end; at += capacity) {
    s.run.context.total = std::min(capacity, slice.end - at);
    pass.forward_loss(s, batch, at, std::min(at + capacity, slice.end), nullptr, 1);
  }
}

/// Whatever layers want to have before the blocks of n samples come.
template <class Memory> void prepare_depth_first(typename Memory::State& s, long capacity, long n) {
  const long count = (n + capacity - 1) / capacity;
  for (long b = 0; b < count; ++b) {
    s.run.batch = n * (b + 1) / count - n * b / count;
    Memory::Root::prepare(s.run, ArenaOffsets{});
  }
}

}  // namespace skein::inline SKEIN_ABI::nn
