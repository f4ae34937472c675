// SPDX-License-Identifier: Apache-2.0
// The bodies of training_position.hpp.
#pragma once
#include "../core/hash.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::uint64_t hash_of_shards(std::span<const std::int64_t> sizes) {
  Fnv1a hash;
  for (const std::int64_t n : sizes) hash.add(static_cast<std::uint64_t>(n));
  return sizes.empty() ? 0 : hash.value();
}

SKEIN_INLINE void check_order(const TrainingPosition& at, const EpochOrder& now) {
  const EpochOrder& then = at.order;
  if (at.step == 0 || then.batch == 0) return;
  const auto demand = [&](bool same, const char* name, auto was, auto is) {
    if (same) return;
    throw ArgumentError(
        text("fit: the loaded training goes on at step {} of its epoch {}, where {} was {}; now it is {}: go on "
             "with the same, or take load_weights(path), which begins an epoch anew",
             at.step, at.base + at.epoch + 1, name, was, is));
  };
  demand(then.batch == now.batch, "the batch over all ranks (.batch)", then.batch, now.batch);
  demand(then.samples == now.samples, "the number of training samples", then.samples, now.samples);
  demand(then.shards == now.shards, "the hash of the shards' sizes (.loader.partition, ranks)", then.shards, now.shards);
  demand(then.shuffle == now.shuffle, ".loader.shuffle", then.shuffle, now.shuffle);
  demand(then.seed == now.seed, ".seed", then.seed, now.seed);
  demand(then.keeps_last == now.keeps_last, ".loader.last", then.keeps_last ? "keep" : "drop", now.keeps_last ? "keep" : "drop");
}

SKEIN_INLINE void check_epochs(const TrainingPosition& at, int epochs) {
  if (at.epoch == 0 || at.epoch < epochs) return;
  throw ArgumentError(
      text("fit: nothing to do: {} of {} epochs are done. After load() .epochs is the total, with those of the "
           "file: ask for more than {}, or take load_weights(path), which begins anew with the file's weights",
           at.epoch, epochs, at.epoch));
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
