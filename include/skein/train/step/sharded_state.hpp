// SPDX-License-Identifier: Apache-2.0
// The optimizer's state as files have it, whole: where ranks own parts of it, rank 0 gathers them while a training is saved; of
// frozen parameters, of which there is none, it is zeros.
#pragma once
#include <algorithm>
#include <vector>

#include "../../device/copy.hpp"
#include "transform.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The whole state of the optimizer on rank 0, while a training is saved.
template <class Parts> class ShardedState {
  using Scalar = typename Parts::Scalar;
  using Device = typename Parts::Device;
  using PolicyState = typename Parts::PolicyState;
  static constexpr bool has_curvature = optim::needs_curvature<typename Parts::Optimizer>;

 public:
  /// Array k, whole, in the layout of the parameters: of a state in parts, on rank 0, between gather() and drop().
  DeviceSpan<Scalar, Device> array(Parts& parts, int k) {
    if (!gathered_.empty()) return gathered_[static_cast<std::size_t>(k)].span();
    return padded(parts, k);
  }
  /// Sets array k from a whole one of the host: what is kept of it.
  void set(Parts& parts, int k, const Scalar* values) {
    const DeviceSpan<Scalar, Device> array = parts.optimizer.array(k);
    Copy<Device, Cpu>::run(array.data, values + parts.optimizer.kept().begin, array.size * sizeof(Scalar), parts.model->where(),
                           Cpu{});
  }
  /// All ranks.
  void gather([[maybe_unused]] Parts& parts) {
    if constexpr (parallel::OwnsPart<PolicyState>) {
      gathered_.clear();
      for (int k = 0; parts.slices_state() && k < parts.optimizer.arrays(); ++k) {
        Arena<Scalar, Device> all(static_cast<std::size_t>(Parts::stored), parts.model->where());
        parts.policy_state.gather(parts.optimizer.array(k), all.span());
        if (parts.policy_state.rank() == 0) gathered_.push_back(std::move(all));
      }
    }
    if constexpr (has_curvature) gather_curvature(parts);
  }
  /// Of it what a chain with Needs::curvature remembers, alone.
  void gather_curvature(Parts& parts) requires has_curvature {
    parts.curvature.gather(RanksOfCurvature<PolicyState>{parts.policy_state});
  }
  void drop([[maybe_unused]] Parts& parts) {
    gathered_.clear();
    padded_.clear();
    if constexpr (has_curvature) parts.curvature.drop();
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
