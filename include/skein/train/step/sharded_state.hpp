// SPDX-License-Identifier: Apache-2.0
// The optimizer's state as files have it, whole: where ranks own parts of it, rank 0 gathers them while a training is saved; of
// frozen parameters, of which there is none, it is zeros.
#pragma once
#include <algorithm>
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
    return padded(parts, k);
  }
  /// All ranks.
  void gather([[maybe_unused]] Parts& parts) {
    using PolicyState = typename Parts::PolicyState;
    if constexpr (parallel::OwnsPart<PolicyState>) {
      gathered_.clear();
      for (int k = 0; parts.slices_state() && k < parts.optimizer.arrays(); ++k) {
        Arena<Scalar, Device> all(static_cast<std::size_t>(Parts::stored), parts.model->where());
        parts.policy_state.gather(parts.optimizer.array(k), all.span());
        if (parts.policy_state.rank() == 0) gathered_.push_back(std::move(all));
      }
    }
  }
  void drop() {
    gathered_.clear();
    padded_.clear();
  }

 private:
  DeviceSpan<Scalar, Device> padded(Parts& parts, int k) {
    const DeviceSpan<Scalar, Device> here = parts.optimizer.array(k);
    if constexpr (on_host<Device>) {  // else there is state of all that is owned
      const plan::Range kept = parts.optimizer.kept();
      if (parts.slices_state() || kept.begin == 0) return here;
      padded_.resize(static_cast<std::size_t>(parts.optimizer.arrays()));
      auto& all = padded_[static_cast<std::size_t>(k)];
      all = Arena<Scalar, Device>(static_cast<std::size_t>(Parts::stored));
      std::copy_n(here.data, here.size, all.data() + kept.begin);
      return all.span();
    }
    return here;
  }

  std::vector<Arena<Scalar, Device>> gathered_, padded_;
};

}  // namespace skein::inline SKEIN_ABI::train
