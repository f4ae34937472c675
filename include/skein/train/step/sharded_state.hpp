// SPDX-License-Identifier: Apache-2.0
// The optimizer's state as files have it, whole: where ranks own parts of it, rank 0 gathers them while a training is saved.
#pragma once
#include <vector>

#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The whole state of the optimizer on rank 0, while a training is saved.
template <class Parts> class ShardedState {
  using Scalar = typename Parts::Scalar;
  using Device = typename Parts::Device;

 public:
  /// Array k, whole, in the layout of the parameters: of a state in parts, on rank 0, between gather() and drop().
  DeviceSpan<Scalar, Device> array(Parts& parts, int k) {
    if (!gathered_.empty()) return gathered_[static_cast<std::size_t>(k)].span();
    return parts.optimizer.array(k);
  }
  /// All ranks.
  void gather([[maybe_unused]] Parts& parts) {
    using PolicyState = typename Parts::PolicyState;
    if constexpr (parallel::OwnsPart<PolicyState>) {
      gathered_.clear();
      const bool apart = parallel::ServesUpdates<PolicyState> || !parts.optimizer.whole();
      for (int k = 0; apart && k < parts.optimizer.arrays(); ++k) {
        Arena<Scalar, Device> all(static_cast<std::size_t>(Parts::stored), parts.model->where());
        parts.policy_state.gather(parts.optimizer.array(k), all.span());
        if (parts.policy_state.rank() == 0) gathered_.push_back(std::move(all));
      }
    }
  }
  void drop() { gathered_.clear(); }

 private:
  std::vector<Arena<Scalar, Device>> gathered_;
};

}  // namespace skein::inline SKEIN_ABI::train
