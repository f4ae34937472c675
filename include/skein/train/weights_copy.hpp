// SPDX-License-Identifier: Apache-2.0
// WeightsCopy: parameters and buffers as they were, in memory of the host, to be given back to the model: what a training keeps
// of its best epoch.
#pragma once
#include <vector>

#include "../parallel/training_arrays.hpp"
#include "../plan/program.hpp"
#include "host_copy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// WeightsCopy<TrainStep> copy;  copy.keep(train_step);  ...  copy.give_back(train_step). Each rank has its own.
template <class TrainStep> class WeightsCopy {
  using Scalar = typename TrainStep::Scalar;
  using Device = typename TrainStep::Device;

 public:
  bool empty() const { return arrays_.empty(); }
  /// The parameters that this process has, then the buffers, in the host's memory: a vector for each part.
  std::vector<std::vector<Scalar>>& arrays() { return arrays_; }
  /// In place of what it had. Waits for a device.
  void keep(TrainStep& train_step) {
    std::size_t i = 0;
    HostCopy<Scalar, Device> copy;
    each_part(train_step, [&](std::size_t size, const Scalar* values) {
      if (i == arrays_.size()) arrays_.emplace_back();
      const Scalar* from = copy.read(values, size, train_step.model().where());
      arrays_[i++].assign(from, from + size);
    });
  }
  /// The model's weights and buffers are what they were; where ranks train their own, those of rank 0: a call of all ranks.
  void give_back(TrainStep& train_step) {
    [[maybe_unused]] const auto lease = train_step.model().modify();
    auto next = arrays_.begin();
    each_part(train_step, [&](std::size_t size, Scalar* values) {
      HostCopy<Scalar, Device>::write(values, (next++)->data(), size, train_step.model().where());
    });
    if constexpr (TrainStep::PolicyState::local_sums) train_step.policy_state().start();
  }

 private:
  template <class Visit> static void each_part(TrainStep& train_step, const Visit& visit) {
    for (int a : {parallel::training_arrays::parameters, parallel::training_arrays::buffers})
      train_step.arrays().each_part(
          a, [&](plan::Range r, Scalar* values) { visit(static_cast<std::size_t>(r.end - r.begin), values); });
  }

  std::vector<std::vector<Scalar>> arrays_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
