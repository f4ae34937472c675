// SPDX-License-Identifier: Apache-2.0
// What a commit has of each rank alone, beside the training that all have: the buffers before they were averaged; where ranks
// train weights of their own, those and the optimizer's state.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../optim/transform/transform.hpp"
#include "../parallel/concepts.hpp"
#include "host_copy.hpp"
#include "saved_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Calls visit(arena, prefix of the section names, entries) for each array of the model: on the model's device.
template <class TrainStep, class Visit> void for_each_arena(TrainStep& train_step, Visit&& visit) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  visit(train_step.whole_parameters(), "parameters/", Model::program.parameters());
  visit(train_step.whole_buffers(), "buffers/", Model::program.buffers());
}
/// Calls visit(range of the whole network's, values on the device) for the buffers that this process has.
template <class TrainStep, class Visit> void each_buffer_part(TrainStep& train_step, Visit&& visit) {
  if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>) {
    train_step.each_buffer_part(std::forward<Visit>(visit));
  } else {
    const auto buffers = train_step.whole_buffers();
    visit(plan::Range{0, static_cast<long>(buffers.size)}, buffers.data);
  }
}
/// Calls visit(range of the whole network's, values on the device) for what this process has of the optimizer's array k.
template <class TrainStep, class Visit> void each_state_part(TrainStep& train_step, int k, Visit&& visit) {
  if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>)
    train_step.each_state_part(k, std::forward<Visit>(visit));
  else visit(train_step.optimizer().kept(), train_step.optimizer().array(k).data);
}
/// Is there a section "policy".
template <class TrainStep> inline constexpr bool policy_keeps_state =
    parallel::KeepsState<std::remove_cvref_t<decltype(std::declval<TrainStep&>().policy_state())>>;
/// Is there a section "curvature".
template <class TrainStep> inline constexpr bool keeps_curvature =
    optim::needs_curvature<std::remove_cvref_t<decltype(std::declval<TrainStep&>().optimizer().optimizer())>>;
/// The names of the sections of an optimizer's array.
inline std::string state_prefix(int k) { return "optimizer/" + std::to_string(k) + "/"; }
}  // namespace detail

/// Refers to the train step, and keeps what was loaded of this rank until take_own().
template <class TrainStep> class OwnArrays {
 protected:
  using Model = std::remove_cvref_t<decltype(std::declval<TrainStep&>().model())>;
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using PolicyState = typename TrainStep::PolicyState;
  using Entries = std::span<const plan::Entry>;

 public:
  explicit OwnArrays(TrainStep& train_step) : train_step_(train_step) {}
  /// After load_from() of a commit of as many ranks, when the ranks' weights have been made one: what this rank has of its own.
  void take_own() {
    for (std::size_t a = 0; a < own_.size(); ++a) {
      if (own_[a].size() == 0) continue;
      if (a >= 2) train_step_.set_state(static_cast<int>(a - 2), own_[a].data());
      else if (a == 1) write_buffers(own_[a].data());
      else write(train_step_.whole_parameters(), own_[a].data());
    }
    own_.clear();
  }

 protected:
  /// Each rank has a whole model, which need not be that of the others: of a Pipeline it has its stages.
  static constexpr bool has_own = !parallel::SharesBatches<PolicyState>;
  /// Its buffers are not those of the others: of a rank, or of a replica of a pipeline, whose ranks have their stages of them.
  bool has_own_buffers() const {
    const auto& state = train_step_.policy_state();
    if constexpr (has_own) return state.ranks() > 1;
    else return state.shards() > 1;
  }
  /// They may differ after a step.
  bool drifts() const {
    const auto& state = train_step_.policy_state();
    return state.ranks() > 1 && state.same_weights() != parallel::SameWeights::after_step;
  }
  static SavedArray array(const std::string& prefix, Entries entries) {
    return {prefix, entries, Model::program.parts(), section_type<Scalar>()};
  }
  template <class Array> void write(const Array& to, const Scalar* from) {
    HostCopy<Scalar, Device>::write(to.data, from, to.size, train_step_.model().where());
  }
  /// What a commit has of one rank alone begins so: "rank_1_of_2/parameters/0.weight". All ranks of a replica of a pipeline are
  /// one here: each has a part of the batch, whatever the number of its stages is.
  std::string own_prefix() {
    const auto& state = train_step_.policy_state();
    int rank = state.rank(), ranks = state.ranks();
    if constexpr (!has_own) rank = state.shard(), ranks = state.shards();
    return "rank_" + std::to_string(rank) + "_of_" + std::to_string(ranks) + "/";
  }
  template <class Visit> void each_buffer_part(Visit&& visit) {
    detail::each_buffer_part(train_step_, std::forward<Visit>(visit));
  }
  void keep_own_buffers() {
    own_buffers_.resize(static_cast<std::size_t>(Model::sizes.buffers));
    HostCopy<Scalar, Device> copy;
    each_buffer_part([&](plan::Range r, const Scalar* values) {
      const auto count = static_cast<std::size_t>(r.end - r.begin);
      std::copy_n(copy.read(values, count, train_step_.model().where()), count, own_buffers_.begin() + r.begin);
    });
  }
  /// What this process has of them, from memory of the host with those of the whole network.
  void write_buffers(const Scalar* whole) {
    each_buffer_part([&](plan::Range r, Scalar* values) {
      HostCopy<Scalar, Device>::write(values, whole + r.begin, static_cast<std::size_t>(r.end - r.begin),
                                      train_step_.model().where());
    });
  }
  std::vector<Arena<Scalar>> own_arrays(SectionSource& source, const std::string& mine, bool drifted) {
    std::vector<Arena<Scalar>> all;
    const auto stage = [&](bool wanted, const std::string& prefix, std::size_t size, Entries entries) {
      const SavedArray a = array(mine + prefix, entries);
      wanted = wanted && source.has(a);
      all.emplace_back(wanted ? size : 0);
      if (wanted) source.array(a, all.back().data());
    };
    detail::for_each_arena(train_step_, [&](auto arena, const char* prefix, Entries entries) {
      stage(drifted || !all.empty(), prefix, arena.size, entries);  // the buffers in any case
    });
    for (int k = 0; drifted && k < train_step_.optimizer().arrays(); ++k)
      stage(true, detail::state_prefix(k), static_cast<std::size_t>(Model::sizes.stored), Model::program.parameters());
    return all;
  }
  TrainStep& train_step_;
  std::vector<Arena<Scalar>> own_;  // what was loaded of this rank alone: parameters, buffers, the optimizer's arrays, or nothing
  std::vector<Scalar> own_buffers_;  // while a commit is written: of the whole network, where this process has them
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
