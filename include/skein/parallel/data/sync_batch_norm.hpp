// SPDX-License-Identifier: Apache-2.0
// SyncBatchNorm: batch normalisation takes its statistics from the whole batch instead of each rank's part, forward and backward:
// R ranks with B / R samples each train as one rank with B. Layers ask their context for reduce_statistics; this fills it.
#pragma once
#include <string>

#include "../../comm/op.hpp"
#include "../comm_policy_state.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Batch normalisation with the statistics of all ranks. Costs two blocking all-reduces of 2 doubles a channel in each step; of a
/// model in double on the host three, since it sums squares once more about the means.
struct SyncBatchNorm : OptionBase {
  static constexpr OptionKind kind = OptionKind::statistics;
  static std::string described() { return "SyncBatchNorm"; }

  template <class Inner> class Around : public Inner {
   public:
    static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::reduces_statistics};
    static constexpr bool capturable = false;  // the layer's sums wait for the other ranks within the step
    using Inner::Inner;

    /// Sums n values over the ranks, in the device's memory. Every rank asks at the same places of its step.
    void reduce_statistics(double* values, long n) {
      if (!this->several()) return;
      const auto exposed = this->waiting();
      this->comm().all_reduce(DeviceSpan<double, typename Inner::device>(values, static_cast<std::size_t>(n)), Sum{});
    }
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
