// SPDX-License-Identifier: Apache-2.0
// Virtual shards of a batch, each with gradients of its own, which are summed by a fixed tree: the stage behind backward under a
// policy that has such (parallel/data/reproducible.hpp).
#pragma once
#include <string>

#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The stage that sums the gradients of virtual shards.
struct SumShards {
  template <class Parts> static constexpr bool used = Parts::PolicyState::virtual_shards > 0;
  static constexpr bool of_updates = true, waits = true;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    w.parts.executor->sum_shards(w.worker);
    return true;
  }

  /// What a new executor is asked for, and what the policy then sums of it. Of other policies nothing.
  template <class Parts> static void ask([[maybe_unused]] const Parts& parts, [[maybe_unused]] ExecutorOptions& options) {
    if constexpr (used<Parts>) options.shards = share(parts);
  }
  template <class Parts, class Executor> static void attach([[maybe_unused]] Parts& parts, [[maybe_unused]] Executor& executor) {
    if constexpr (used<Parts>) parts.policy_state.set_partial_sums(executor.subtree_sums());
  }

  /// The sums of the batch, which are added up as the gradients are, with or without other ranks.
  template <class Parts> static void take_sums(Parts& parts, StepState<Parts>& step) {
    step.sums = step.update ? parts.sums_of_tail() : parts.executor->shard_sums();
    step.weight = step.sums.weight;
  }

  /// Which of the shards are this rank's.
  template <class Parts> static plan::VirtualShards share(const Parts& parts) {
    return plan::virtual_shards(Parts::PolicyState::virtual_shards, parts.policy_state.ranks(), parts.policy_state.rank());
  }
  /// A rank's samples are those of its virtual shards, which the size of the whole batch gives. Throws ArgumentError for others.
  template <class Parts, class Batch> static void check(const Parts& parts, const Batch& batch) {
    const plan::VirtualShards s = share(parts);
    const long n = static_cast<long>(batch.global_count);
    const auto wanted = plan::shard_begin(n, s.total, s.end) - plan::shard_begin(n, s.total, s.begin);
    if (batch.count != wanted)
      throw ArgumentError(
          text("Reproducible: of a batch of {} this rank's virtual shards have {} samples, it is given {}: give data::Loader "
               ".shards = {}",
               n, wanted, batch.count, Parts::PolicyState::virtual_shards));
  }
};

}  // namespace skein::inline SKEIN_ABI::train
