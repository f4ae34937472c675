// SPDX-License-Identifier: Apache-2.0
// What a caller says of one training step, to a TrainStep as to the stages of a pipeline.
#pragma once
#include <cstdint>

#include "../core/random.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// What may change from step to step.
struct StepOptions {
  double lr_factor = 1;     ///< schedule: a factor of the optimizer's lr
  double clip_norm = 0;     ///< 0: no clipping
  bool accumulate = false;  ///< add to the gradients of the call before, which made no update
  bool update = true;       ///< false: gradients only (all but the last call of an accumulation)
  std::uint64_t key = 0;    ///< of this step's random numbers; 0: another in each call, of the model's seed and the step's number
  bool graph = true;  ///< may the step be captured and replayed, where the device has such, alike on all ranks; not by a pipeline
  bool finite = false;  ///< on the host: the update is left out where the loss, or the norm to clip by, is not finite, on all
                        ///< ranks alike: where their policy does not add up all gradients (SyncEvery, ModelAverage, Gossip)
                        ///< they ask each other in each step, and so make as many. With a ParameterServer each for itself
  bool stops = false;   ///< with .finite: who leaves a step out makes no further one, as fit, and so asks no other rank
  /// The mean is over so many samples, those of all calls and ranks of the step; 0: as many as its first call has. Pipelines do
  /// not look at it.
  long of_samples = 0;

  /// What the gradients of a step are the mean over, where its first call has so many samples over all ranks.
  constexpr long samples_of(std::int64_t first_call) const { return of_samples > 0 ? of_samples : static_cast<long>(first_call); }
};

/// The key of a step's random numbers: the caller's, or one of the seed, the step's number, and how many calls of the step were
/// before. Other steps have other keys; whoever draws mixes them.
constexpr std::uint64_t key_of_step(const StepOptions& options, Seed seed, std::int64_t number, std::int64_t calls) {
  if (options.key != 0) return options.key;
  constexpr std::uint64_t most_calls = 1 << 24;  // an instruction or two: a small step is 1,600
  return seed.value + static_cast<std::uint64_t>(number) * most_calls + static_cast<std::uint64_t>(calls);
}

}  // namespace skein::inline SKEIN_ABI::optim
