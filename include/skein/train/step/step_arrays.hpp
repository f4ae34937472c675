// SPDX-License-Identifier: Apache-2.0
// The arrays of a training on this rank, and as files have them, whole: where ranks own parts of the optimizer's, rank 0 gathers
// them while a training is saved; of frozen parameters, of which the optimizer keeps nothing, there are zeros.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "../../device/copy.hpp"
#include "../../parallel/training_arrays.hpp"
#include "step_parts.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// The optimizer's arrays that are whole while a training is saved: in order of their numbers, or none.
template <class Scalar, class Device> struct WholeArrays { std::vector<Arena<Scalar, Device>> gathered{}, padded{}; };

/// The parameters, the buffers and the optimizer's arrays of a TrainStep, by the numbers in parallel::training_arrays. Refers to
/// the step's parts.
template <class Parts> class StepArrays {
  using Scalar = typename Parts::Scalar;
  using Device = typename Parts::Device;
  using PolicyState = typename Parts::PolicyState;
  static constexpr int first_of_optimizer = parallel::training_arrays::optimizer;

 public:
  using Whole = WholeArrays<Scalar, Device>;
  StepArrays(Parts& parts, Whole& whole) : parts_(parts), whole_(whole) {}

  int count() const { return first_of_optimizer + parts_.optimizer.arrays(); }
  /// visit(range of the whole array, values on the device): what this rank has of it, in one part.
  template <class Visit> void each_part(int array, const Visit& visit) {
    const auto [range, values] = part(array);
    visit(range, values);
  }
  /// From a whole array in the host's memory: what this rank has of it.
  void set(int array, const Scalar* whole) {
    const auto [range, values] = part(array);
    const auto bytes = static_cast<std::size_t>(range.end - range.begin) * sizeof(Scalar);
    Copy<Device, Cpu>::run(values, whole + range.begin, bytes, parts_.model->where(), Cpu{});
  }
  /// The whole array, in the layout of the model's. Where ranks have parts of it, all call gather() before, and rank 0 has it
  /// then until drop().
  DeviceSpan<Scalar, Device> whole(int array) {
    if (array < first_of_optimizer) return of_model(array);
    const auto k = static_cast<std::size_t>(array - first_of_optimizer);
    return whole_.gathered.empty() ? padded(array) : whole_.gathered[k].span();
  }
  /// The updates that the state of each parameter has had after so many steps; and those of a file, from which it goes on.
  optim::StateUpdates updates_after(std::int64_t steps) const {
    return parts_.optimizer.updates_after(parts_.state_updates, steps, Parts::Model::program.parameters());
  }
  void set_updates(optim::StateUpdates updates) {
    std::int64_t steps = updates.steps;  // as the optimizer is told them
    if constexpr (parallel::ServesUpdates<PolicyState>)
      if (parts_.policy_state.updates() > 0) steps = parts_.policy_state.updates();
    if (parts_.optimizer.begin_at(updates.scaled_to(steps), Parts::Model::program.parameters())) parts_.device.forget();
    parts_.state_updates = std::move(updates);
  }
  /// All ranks.
  void gather() {
    if constexpr (parallel::OwnsPart<PolicyState>) {
      whole_.gathered.clear();
      for (int a = first_of_optimizer; parts_.slices_state() && a < count(); ++a) {
        Arena<Scalar, Device> all(static_cast<std::size_t>(Parts::stored), parts_.model->where());
        parts_.policy_state.gather(of_optimizer(a), all.span());
        if (parts_.policy_state.rank() == 0) whole_.gathered.push_back(std::move(all));
      }
    }
    gather_curvature();
  }
  /// What a chain with Needs::curvature remembers, alone.
  void gather_curvature() { parts_.curvature.gather(parts_.policy_state); }
  void drop() {
    whole_ = {};
    parts_.curvature.drop();
  }

 private:
  struct Part {
    plan::Range range;
    Scalar* values;
  };
  Part part(int array) {  // two returns: nvcc 13.0 dies of conditional expressions here, in any program that trains on a GPU
    if (array >= first_of_optimizer) return {parts_.optimizer.kept(), of_optimizer(array).data};
    const DeviceSpan<Scalar, Device> all = of_model(array);
    return {plan::Range{0, static_cast<long>(all.size)}, all.data};
  }
  DeviceSpan<Scalar, Device> of_model(int array) {
    return array == parallel::training_arrays::parameters ? parts_.model->weights().unguarded() : parts_.model->buffers();
  }
  DeviceSpan<Scalar, Device> of_optimizer(int array) { return parts_.optimizer.array(array - first_of_optimizer); }
  DeviceSpan<Scalar, Device> padded(int array) {
    const DeviceSpan<Scalar, Device> here = of_optimizer(array);
    if constexpr (on_host<Device>) {  // else there is state of all that is owned
      const plan::Range kept = parts_.optimizer.kept();
      if (parts_.slices_state() || kept.begin == 0) return here;
      whole_.padded.resize(static_cast<std::size_t>(parts_.optimizer.arrays()));
      auto& all = whole_.padded[static_cast<std::size_t>(array - first_of_optimizer)];
      all = Arena<Scalar, Device>(static_cast<std::size_t>(Parts::stored));
      std::copy_n(here.data, here.size, all.data() + kept.begin);
      return all.span();
    }
    return here;
  }

  Parts& parts_;
  Whole& whole_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
