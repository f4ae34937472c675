// SPDX-License-Identifier: Apache-2.0
// Is a batch one that a training step can take: asked before the parallel region, so that nothing has been changed by a wrong
// one.
#pragma once
#include "../../nn/check_batch.hpp"
#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Checks a batch as nn::check_given does, and that memory is reserved. `training`: there must be targets.
template <class Parts, class Given> inline void check_step_batch(const Parts& parts, const Given& given, bool training) {
  const auto& batch = batch_view<typename Parts::Scalar, typename Parts::Device>(given);  // refuses what is no batch
  nn::check_reserved(parts.executor.get());
  nn::check_given<typename Parts::Model>(parts.loss, given, batch, training);
}

}  // namespace skein::inline SKEIN_ABI::train
