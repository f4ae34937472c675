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
#include "../parallel/training_arrays.hpp"
#include "host_copy.hpp"
#include "saved_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Is there a section "policy".
template <class TrainStep> inline constexpr bool policy_keeps_state =
    parallel::KeepsState<std::remove_cvref_t<decltype(std::declval<TrainStep&>().policy_state())>>;
/// Is there a section "curvature".
template <class TrainStep> inline constexpr bool keeps_curvature =
    optim::needs_curvature<std::remove_cvref_t<decltype(std::declval<TrainStep&>().optimizer().optimizer())>>;
/// The names of an array's sections begin so; the optimizer's arrays are counted from 0.
inline std::string array_prefix(int array) {
  if (array == parallel::training_arrays::parameters) return "parameters/";
  if (array == parallel::training_arrays::buffers) return "buffers/";
  return text("optimizer/{}/", array - parallel::training_arrays::optimizer);
}
}  // namespace detail

/// Refers to the train step, and keeps what was loaded of this rank until take_own().
template <class TrainStep> class OwnArrays {
 protected:
  using Model = std::remove_cvref_t<decltype(std::declval<TrainStep&>().model())>;
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using PolicyState = typename TrainStep::PolicyState;
  using Entries = std::span<const plan::Entry>;
  static constexpr int parameters = parallel::training_arrays::parameters, buffers = parallel::training_arrays::buffers;

 public:
  explicit OwnArrays(TrainStep& train_step) : train_step_(train_step) {}
  /// After load_from() of a commit of as many ranks, when the ranks' weights have been made one: what this rank has of its own.
  void take_own() {
    for (std::size_t a = 0; a < own_.size(); ++a)
      if (own_[a].size() > 0) train_step_.arrays().set(static_cast<int>(a), own_[a].data());
    own_.clear();
  }

 protected:
  /// Each rank has a whole model, which need not be that of the others: of a Pipeline it has its stages.
  static constexpr bool has_own = !parallel::SplitsModel<PolicyState>;
  /// Its buffers are not those of the others: of a rank, or of a replica of a pipeline, whose ranks have their stages of them.
  bool has_own_buffers() const {
    const auto& state = train_step_.policy_state();
    if constexpr (has_own) return state.ranks() > 1;
    else return state.batch_parts() > 1;
  }
  /// They may differ after a step.
  bool drifts() const {
    const auto& state = train_step_.policy_state();
    return state.ranks() > 1 && state.same_weights() != parallel::SameWeights::after_step;
  }
  static Entries entries(int array) { return array == buffers ? Model::program.buffers() : Model::program.parameters(); }
  /// Scalars of the whole array.
  static std::size_t size(int array) {
    return static_cast<std::size_t>(array == buffers ? Model::sizes.buffers : Model::sizes.stored);
  }
  /// `before`: what the names of its sections begin with.
  static SavedArray section(int array, const std::string& before = {}) {
    return {before + detail::array_prefix(array), entries(array), Model::program.parts(), section_type<Scalar>()};
  }
  /// What a commit has of one rank alone begins so: "rank_1_of_2/parameters/0.weight". All ranks of a replica of a pipeline are
  /// one here: each has a part of the batch, whatever the number of its stages is.
  std::string own_prefix() {
    const auto& state = train_step_.policy_state();
    int rank = state.rank(), ranks = state.ranks();
    if constexpr (!has_own) rank = state.batch_part(), ranks = state.batch_parts();
    return text("rank_{}_of_{}/", rank, ranks);
  }
  void keep_own_buffers() {
    own_buffers_.resize(size(buffers));
    HostCopy<Scalar, Device> copy;
    train_step_.arrays().each_part(buffers, [&](plan::Range r, const Scalar* values) {
      const auto count = static_cast<std::size_t>(r.end - r.begin);
      std::copy_n(copy.read(values, count, train_step_.model().where()), count, own_buffers_.begin() + r.begin);
    });
  }
  std::vector<Arena<Scalar>> own_arrays(SectionSource& source, const std::string& mine, bool drifted) {
    std::vector<Arena<Scalar>> all;
    for (int a = 0; a < train_step_.arrays().count(); ++a) {
      const SavedArray own = section(a, mine);
      const bool wanted = (drifted || a == buffers) && source.has(own);
      all.emplace_back(wanted ? size(a) : 0);
      if (wanted) source.array(own, all.back().data());
    }
    return all;
  }
  TrainStep& train_step_;
  std::vector<Arena<Scalar>> own_;  // what was loaded of this rank alone: parameters, buffers, the optimizer's arrays, or nothing
  std::vector<Scalar> own_buffers_;  // while a commit is written: of the whole network, where this process has them
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
