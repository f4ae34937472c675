// SPDX-License-Identifier: Apache-2.0
// Does a batch have targets that its loss compares with: BinaryCrossEntropy takes probabilities, and of others makes a loss that
// falls below zero without a word. Labels are looked at by check_labels (loss.hpp).
#pragma once
#include "../../device/batch_view.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A loss of values that are not any number refuses others: static void check_targets(const Scalar* targets, long pitch, long
/// width, long count, const SampleNames&), rows of `width` values `pitch` apart. Asked on the host, before a step.
template <class L> concept ChecksTargets = requires(const float* targets, const SampleNames& names) {
  L::check_targets(targets, 1L, 1L, 1L, names);
};
/// Calls the loss's check_targets(), if it has one; a loss that takes any number looks at none.
template <class L, class Scalar> void check_targets([[maybe_unused]] const Scalar* targets, [[maybe_unused]] long pitch,
                                                    [[maybe_unused]] long width, [[maybe_unused]] long count,
                                                    [[maybe_unused]] const SampleNames& names = {}) {
  if constexpr (ChecksTargets<L>) L::check_targets(targets, pitch, width, count, names);
}

/// A loss whose rows of targets hold class numbers, as GraphLoss's may, looks at them: void check_class_numbers(const Scalar*
/// targets, long pitch, long count, const SampleNames&) const.
template <class L, class Scalar>
concept ChecksClassNumbers = requires(const L& loss, const Scalar* targets, const SampleNames& names) {
  loss.check_class_numbers(targets, 1L, 1L, names);
};

}  // namespace skein::inline SKEIN_ABI::nn
