// SPDX-License-Identifier: Apache-2.0
// A pipeline's training as its file has it: the arrays of the whole network, on rank 0 while a file is written, on every rank
// while one is read.
#pragma once
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "pipeline_local_stages.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// The arrays of the whole network in one model, while they are there. Array 0: parameters, 1: buffers, then the optimizer's.
template <class LocalStages> class PipelineFiles {
  using Model = typename LocalStages::Model;
  using Scalar = typename LocalStages::Scalar;
  using Device = typename LocalStages::Device;

 public:
  explicit PipelineFiles(LocalStages& stages) : stages_(stages) {}

  Arena<Scalar, Device>& whole(std::size_t array) { return make_whole()[array]; }
  /// All ranks: brings the stages' arrays together on rank 0.
  void gather() {
    const PipelineTeam& team = *stages_.team;
    if (team.replica > 0) return;
    if (team.process == 0) make_whole();
    for (std::size_t a = 0; a < static_cast<std::size_t>(2 + stages_.optimizer().arrays()); ++a)
      for (int s = 0; s < Model::stages; ++s) {
        const int from = team.process_of(s);
        const plan::Range r = range(a, s);
        if (r.begin == r.end || (team.process != 0 && from != team.process)) continue;
        if (from == 0) {
          if (team.process == 0) copy(whole_[a].data() + r.begin, mine(a, s), r);
        } else {
          HostSide<Scalar, Device> values(team.process == 0 ? whole_[a].data() + r.begin : mine(a, s), count(r), where());
          if (team.process != 0) values.read();
          move(values, from);
        }
      }
  }
  void drop() { whole_.clear(); }
  /// visit(range of the whole array, values on the device): what this process has of it.
  template <class Visit> void each_part(std::size_t array, Visit&& visit) {
    for (auto& h : stages_.stages)
      if (const plan::Range r = range(array, h.stage); r.end > r.begin) visit(r, mine(array, h.stage));
  }
  /// The same of what this process writes where each writes its own, and replicas are equal.
  template <class Visit> void each_own_part(std::size_t array, Visit&& visit) {
    if (stages_.team->replica == 0) each_part(array, std::forward<Visit>(visit));
  }
  /// visit(array, range, writes): of the parameters (array 0) and the buffers (1) of each stage that this process has, which part
  /// of the whole array they are, and whether this process writes them.
  template <class Visit> void each_weight_range(Visit&& visit) {
    const PipelineTeam& team = *stages_.team;
    for (auto& h : stages_.stages)
      for (std::size_t a : {0, 1}) visit(a, range(a, h.stage), team.replica == 0 && team.process_of(h.stage) == team.process);
  }
  /// Each stage's part of one of the optimizer's arrays, from memory of the host.
  void set_state(int k, const Scalar* whole) {
    for (auto& h : stages_.stages)
      Copy<Device, Cpu>::run(mine(static_cast<std::size_t>(2 + k), h.stage), whole + Model::range(h.stage).begin,
                             static_cast<std::size_t>(h.stored) * sizeof(Scalar), where(), Cpu{});
  }
  /// Each stage takes its own of whole(0) and whole(1), which were written.
  void scatter() {
    for (auto& h : stages_.stages)
      for (std::size_t a : {0, 1})
        if (const plan::Range r = range(a, h.stage); r.end > r.begin) copy(mine(a, h.stage), whole_[a].data() + r.begin, r);
  }

 private:
  static std::size_t count(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
  static plan::Range range(std::size_t array, int stage) { return array == 1 ? Model::buffer_range(stage) : Model::range(stage); }
  Device where() const { return stages_.model->where(); }
  void copy(Scalar* to, const Scalar* from, plan::Range r) { Memory<Device>::copy(to, from, count(r) * sizeof(Scalar), where()); }
  /// From the process that has them to rank 0.
  void move(HostSide<Scalar, Device>& values, int from) {
    PipelineLink& line = *stages_.team->line;
    const std::size_t bytes = values.size() * sizeof(Scalar);
    const bool receives = stages_.team->process == 0;
    if (receives) line.receive(0, values.data(), bytes, from, comm::tags::pipeline_files);
    else line.send(0, values.data(), bytes, 0, comm::tags::pipeline_files);
    line.wait(0);
    if (receives) values.write();
  }
  std::vector<Arena<Scalar, Device>>& make_whole() {
    const auto make = [&](long n) { whole_.emplace_back(static_cast<std::size_t>(n), where()); };
    if (whole_.empty()) {
      make(Model::sizes.stored);
      make(Model::sizes.buffers);
      for (int k = 0; k < stages_.optimizer().arrays(); ++k) make(Model::sizes.stored);
    }
    return whole_;
  }
  /// This process's part of an array.
  Scalar* mine(std::size_t array, int stage) {
    if (array == 0) return stages_.model->parameters(stage).data;
    return array == 1 ? stages_.model->buffers(stage).data : stages_.of(stage).optimizer->array(static_cast<int>(array) - 2).data;
  }

  LocalStages& stages_;
  std::vector<Arena<Scalar, Device>> whole_;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
