// SPDX-License-Identifier: Apache-2.0
// WeightsCopy: parameters and buffers as they were, in memory of the host, to be given back to the model: what a training keeps
// of its best epoch.
#pragma once
#include <vector>

#include "../parallel/concepts.hpp"
#include "host_copy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Calls visit(array) for the parameters and the buffers that this process has, on their device.
template <class TrainStep, class Visit> void each_weight_array(TrainStep& train_step, Visit&& visit) {
  if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>) {
    train_step.each_weight_array(visit);
  } else {
    visit(train_step.whole_parameters());
    visit(train_step.whole_buffers());
  }
}

/// WeightsCopy<TrainStep> copy;  copy.keep(train_step);  ...  copy.give_back(train_step). Each rank has its own.
template <class TrainStep> class WeightsCopy {
  using Scalar = typename TrainStep::Scalar;
  using Device = typename TrainStep::Device;

 public:
  bool empty() const { return arrays_.empty(); }
  /// Parameters and buffers, in the host's memory.
  std::vector<std::vector<Scalar>>& arrays() { return arrays_; }
  /// In place of what it had. Waits for a device.
  void keep(TrainStep& train_step) {
    std::size_t i = 0;
    each_weight_array(train_step, [&](const auto& array) {
      if (i == arrays_.size()) arrays_.emplace_back();
      HostCopy<Scalar, Device> copy;
      const Scalar* from = copy.read(array.data, array.size, train_step.model().where());
      arrays_[i++].assign(from, from + array.size);
    });
  }
  /// The model's weights and buffers are what they were; where ranks train their own, those of rank 0: a call of all ranks.
  void give_back(TrainStep& train_step) {
    [[maybe_unused]] const auto lease = train_step.model().modify();
    auto next = arrays_.begin();
    each_weight_array(train_step, [&](const auto& array) {
      HostCopy<Scalar, Device>::write(array.data, (next++)->data(), array.size, train_step.model().where());
    });
    if constexpr (TrainStep::PolicyState::local_sums) train_step.policy_state().start();
  }

 private:
  std::vector<std::vector<Scalar>> arrays_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
