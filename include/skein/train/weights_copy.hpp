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
  using Arrays = std::vector<std::vector<Scalar>>;

  /// Has nothing been kept: all ranks say the same, also one whose stages have no parameters, and so no array.
  bool empty() const { return !kept_; }
  /// The parameters that this process has, then the buffers, in the host's memory: a vector for each part.
  const Arrays& arrays() const { return arrays_; }
  /// In place of what it had. Waits for a device.
  void keep(TrainStep& train_step) {
    std::size_t i = 0;
    HostCopy<Scalar, Device> copy;
    each_part(train_step, [&](int, plan::Range range, const Scalar* values) {
      if (i == arrays_.size()) arrays_.emplace_back();
      const Scalar* from = copy.read(values, length(range), train_step.model().where());
      arrays_[i++].assign(from, from + length(range));
    });
    kept_ = true;
  }
  /// The same of whole arrays: the parameters, then the buffers.
  void take(TrainStep& train_step, const Arrays& whole) {
    arrays_.clear();
    each_part(train_step, [&](int a, plan::Range range, const Scalar*) {
      const auto& from = whole[static_cast<std::size_t>(a)];
      arrays_.emplace_back(from.begin() + range.begin, from.begin() + range.end);
    });
    kept_ = true;
  }
  /// visit(array, range, values): of parameters and buffers each part that this process has, in the order of arrays().
  template <class Visit> static void each_part(TrainStep& train_step, const Visit& visit) {
    for (int a : {parallel::training_arrays::parameters, parallel::training_arrays::buffers})
      train_step.arrays().each_part(a, [&](plan::Range range, Scalar* values) { visit(a, range, values); });
  }
  /// The model's weights and buffers are what they were; where ranks train their own, those of rank 0: a call of all ranks.
  void give_back(TrainStep& train_step) {
    [[maybe_unused]] const auto lease = train_step.model().modify();
    auto next = arrays_.begin();
    each_part(train_step, [&](int, plan::Range range, Scalar* values) {
      HostCopy<Scalar, Device>::write(values, (next++)->data(), length(range), train_step.model().where());
    });
    if constexpr (TrainStep::PolicyState::local_sums) train_step.policy_state().start();
  }

 private:
  static std::size_t length(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }

  Arrays arrays_;
  bool kept_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
