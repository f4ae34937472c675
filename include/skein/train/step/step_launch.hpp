// SPDX-License-Identifier: Apache-2.0
// What a device asks of a step of TrainStep that it launches: all of it at once, or, where it captures steps and replays them,
// the pieces of which it makes a graph.
#pragma once
#include "captured_step.hpp"
#include "device_update.hpp"

namespace skein::inline SKEIN_ABI::train {

/// One step, to be launched by StepDevice::run. Stages: a StageList. Refers to the parts and to the step.
template <class Stages, class Parts> struct StepLaunch {
  Parts& parts;
  StepState<Parts>& step;

  /// With what a graph of this step would be captured.
  CapturedStepKey key() const { return captured_step_key(parts, step); }
  /// Whatever layers want before a capture.
  void prepare() const { parts.executor->prepare(step.batch->count); }
  /// Before all_stages(), or before the graph of them, where a device has numbers of the step.
  void begin() const { parts.executor->begin(*step.batch, step.call); }
  /// The step itself, by all workers. References are taken here, and not within the region: two instructions of a step.
  void all_stages() const {
    parts.executor->run([&parts = parts, &step = step](Worker& w) { Stages::run(w, parts, step); });
  }
  /// In place of all_stages() where those are replayed: what of them writes arguments.
  void host_arguments() const {
    if constexpr (!on_host<typename Parts::Device>)
      if (step.update) DeviceUpdate::update(parts, step);
  }
  /// The first rank, of those that work in the step, that says so, by the number that messages call it; -1: none. All take part.
  int first_refusing(bool refused) const { return train::first_refusing(parts.policy_state, refused); }
};

}  // namespace skein::inline SKEIN_ABI::train
