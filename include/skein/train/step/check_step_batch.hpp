// SPDX-License-Identifier: Apache-2.0
// Is a batch one that a training step can take: asked before the parallel region, so that nothing has been changed by a wrong
// one.
#pragma once
#include <type_traits>

#include "../../nn/check_batch.hpp"
#include "../../nn/check_tokens.hpp"
#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Throws for a batch, as it was given, of other samples than the model takes, of other targets than the loss compares with, or
/// with labels or tokens that the network does not have; before memory is made too. `training`: there must be targets. Labels
/// and tokens that are on a device already are their owner's care.
template <class Parts, class Given> inline void check_step_batch(const Parts& parts, const Given& given, bool training) {
  // inline, since it is a part of each step: a small one has 17 instructions of 1,612 less.
  using Model = typename Parts::Model;
  using Loss = typename Parts::Loss;
  using Scalar = typename Parts::Scalar;
  const auto& batch = batch_view<Scalar, typename Parts::Device>(given);  // refuses what is no batch
  nn::check_reserved(parts.executor.get());
  nn::check_batch<Model, Loss>(given, training);
  nn::check_tokens<Model>(batch, names_of(given));
  if constexpr (Loss::target == nn::TargetKind::label) {
    nn::check_batch_labels<Model>(parts.loss, batch, names_of(given));
  } else if constexpr (nn::ChecksClassNumbers<Loss, Scalar> && on_host<DeviceOf<std::remove_cvref_t<decltype(batch)>>>) {
    if (batch.targets) parts.loss.check_class_numbers(batch.targets, batch.target_pitch, batch.count, names_of(given));
  }
}

}  // namespace skein::inline SKEIN_ABI::train
