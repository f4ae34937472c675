// SPDX-License-Identifier: Apache-2.0
// The arrays of a pipeline's training: those of the stages of this process, and, on rank 0 while a file is written, of the whole
// network in one model.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "../../plan/placement.hpp"
#include "../training_arrays.hpp"
#include "pipeline_local_stages.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// The arrays of a pipeline's training by their numbers, with the functions of train::StepArrays.
template <class LocalStages> class PipelineArrays {
  using Model = typename LocalStages::Model;
  using Scalar = typename LocalStages::Scalar;
  using Device = typename LocalStages::Device;

 public:
  explicit PipelineArrays(LocalStages& stages) : stages_(stages) {}

  int count() const { return training_arrays::optimizer + stages_.optimizer().arrays(); }
  /// visit(range of the whole array, values on the device): what this process has of it.
  template <class Visit> void each_part(int array, Visit&& visit) {
    for (auto& local : stages_.stages)
      if (const plan::Range r = range(array, local.stage); r.end > r.begin) visit(r, mine(array, local.stage));
  }
  /// Does this process write its parts, where each writes its own: those of the other replicas are equal.
  bool writes_parts() const { return stages_.team->replica == 0; }
  /// From a whole array in the host's memory: each stage's part.
  void set(int array, const Scalar* whole) {
    each_part(array, [&](plan::Range r, Scalar* to) {
      Copy<Device, Cpu>::run(to, whole + r.begin, size(r) * sizeof(Scalar), where(), Cpu{});
    });
  }
  /// The whole array, on rank 0 between gather() and drop().
  DeviceSpan<Scalar, Device> whole(int array) { return whole_[static_cast<std::size_t>(array)].span(); }
  /// The optimizer's groups as ranges of the whole network.
  std::vector<optim::ParameterGroupRange> ranges() const {
    const auto rows = Model::program.parameters();
    return optim::resolve(optim::groups_of(stages_.optimizer().optimizer()), rows, optim::names_of(Model::program.parts(), rows));
  }
  /// The updates that the state of each parameter of the whole network has had after so many steps; and those of a file, from
  /// which it goes on.
  optim::StateUpdates updates_after(std::int64_t steps) const {
    return optim::updates_after(state_updates_, steps, Model::program.parameters(), ranges(), 0);
  }
  void set_updates(optim::StateUpdates updates) {
    const auto rows = Model::program.parameters();
    for (auto& local : stages_.stages) {
      const plan::Range own = plan::rows_within(rows, Model::range(local.stage));
      const auto& table = Model::table(local.stage);
      (void)local.optimizer->begin_at(updates.part(own), table.parameters());
    }
    state_updates_ = std::move(updates);
  }
  /// All ranks: brings the stages' arrays together on rank 0.
  void gather() {
    const PipelineTeam& team = *stages_.team;
    if (team.replica > 0) return;
    if (team.process == 0) make_whole();
    for (int a = 0; a < count(); ++a)
      for (int s = 0; s < Model::stages; ++s) {
        const int from = team.process_of(s);
        const plan::Range r = range(a, s);
        if (r.begin == r.end || (team.process != 0 && from != team.process)) continue;
        Scalar* const there = team.process == 0 ? whole(a).data + r.begin : nullptr;
        if (from == 0) {
          if (there) Memory<Device>::copy(there, mine(a, s), size(r) * sizeof(Scalar), where());
        } else {
          HostSide<Scalar, Device> values(there ? there : mine(a, s), size(r), where());
          if (!there) values.read();
          move(values, from);
        }
      }
  }
  void drop() { whole_.clear(); }

 private:
  static std::size_t size(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
  static plan::Range range(int array, int stage) {
    return array == training_arrays::buffers ? Model::buffer_range(stage) : Model::range(stage);
  }
  Device where() const { return stages_.model->where(); }
  /// From the process that has them to rank 0.
  void move(HostSide<Scalar, Device>& values, int from) {
    PipelineLink& link = *stages_.team->pipeline_link;
    const std::size_t bytes = values.size() * sizeof(Scalar);
    const bool receives = stages_.team->process == 0;
    if (receives) link.receive(0, values.data(), bytes, from, comm::tags::pipeline_files);
    else link.send(0, values.data(), bytes, 0, comm::tags::pipeline_files);
    link.wait(0);
    if (receives) values.write();
  }
  void make_whole() {
    whole_.clear();
    for (int a = 0; a < count(); ++a)
      whole_.emplace_back(static_cast<std::size_t>(a == training_arrays::buffers ? Model::sizes.buffers : Model::sizes.stored),
                          where());
  }
  /// The part of an array that is of a stage of this process.
  Scalar* mine(int array, int stage) {
    if (array == training_arrays::parameters) return stages_.model->parameters(stage).data;
    if (array == training_arrays::buffers) return stages_.model->buffers(stage).data;
    return stages_.of(stage).optimizer->array(array - training_arrays::optimizer).data;
  }

  LocalStages& stages_;
  std::vector<Arena<Scalar, Device>> whole_;
  optim::StateUpdates state_updates_{};  // of a training that was loaded
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
