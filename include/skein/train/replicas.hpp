// SPDX-License-Identifier: Apache-2.0
// Are the weights of the ranks still the same, where the policy promises it? A flipped bit of memory, a callback that changes one
// rank's weights, a rank that missed an update are found by a hash of each rank's weights, and named.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/named_values.hpp"
#include "../parallel/concepts.hpp"
#include "../parallel/policy.hpp"
#include "../parallel/training_arrays.hpp"
#include "../plan/program.hpp"
#include "hash.hpp"
#include "host_copy.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The parameters of a part of the table by name, each with a hash of its values: what ranks tell each other where replicas
/// differ. `values`: of the part.
void add_parameter_hashes(NamedValues& to, std::span<const plan::Entry> entries, std::span<const plan::PathPart> paths,
                          plan::Range part, const void* values, std::size_t scalar_bytes);
/// Do ranks that are `apart` ranks apart, and so have the same parameters, have equal hashes? `all`: one of each rank.
bool replicas_equal(std::span<const std::uint64_t> all, std::size_t apart);
/// Throws where the weights of replicas differ. Where more than half of those of a rank have the same, the others are named.
/// `texts`: of each rank, '-' and lines of NamedValues.
[[noreturn]] void fail_replicas(std::string_view when, const std::vector<std::string>& texts, std::size_t apart,
                                const comm::RankNames& names);

/// visit(range of the whole network's, values in the host's memory) for the parameters that this process has.
template <class TrainStep, class Visit> void each_part_on_host(TrainStep& train_step, const Visit& visit) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  using Scalar = typename Model::Scalar;
  HostCopy<Scalar, typename Model::device> copy;
  train_step.arrays().each_part(parallel::training_arrays::parameters, [&](plan::Range part, const Scalar* values) {
    visit(part, copy.read(values, static_cast<std::size_t>(part.end - part.begin), train_step.model().where()));
  });
}
template <class TrainStep> std::uint64_t hash_of_weights(TrainStep& train_step) {
  Hash64 hash;
  each_part_on_host(train_step, [&](plan::Range part, const auto* values) {
    hash.update(values, static_cast<std::size_t>(part.end - part.begin) * sizeof(*values));
  });
  return hash.value();
}
/// Ranks so far apart have the same parameters: those of a pipeline have its stages, and are one behind the other.
template <class PolicyState> std::size_t ranks_of_replica(const PolicyState& state) {
  if constexpr (parallel::SharesBatches<PolicyState>) return static_cast<std::size_t>(state.ranks() / state.batch_parts());
  else return 1;
}
}  // namespace detail

SKEIN_BEGIN_COLD

/// Where all ranks have whole models that the policy keeps the same: a hash of the weights, with which a fit begins. Of a policy
/// that makes them one at the end of a fit, where no step was made since the last end, `steps` steps in all: behind a step, as of
/// a fit that an exception broke off, ranks have weights of their own by right.
template <class TrainStep> void describe_weights(TrainStep& train_step, std::int64_t steps, NamedValues& to) {
  using PolicyState = std::remove_cvref_t<decltype(train_step.policy_state())>;
  if constexpr (!parallel::SplitsModel<PolicyState>) {
    const parallel::SameWeights same = train_step.policy_state().same_weights();
    const bool since_fit =
        !parallel::ServesUpdates<PolicyState> && same == parallel::SameWeights::after_fit && train_step.steps() == steps;
    if (same == parallel::SameWeights::after_step || since_fit) {
      const std::uint64_t hash = detail::hash_of_weights(train_step);
      to.add_hash("the model with which it begins", &hash, sizeof(hash));
    }
  }
}

/// Throws CommError, on all ranks, where replicas that the policy promises to be equal are not: it names the first parameter that
/// differs, and the ranks. `when`: "at the end of fit". Collective: one all_gather of 8 bytes where all are equal.
template <class TrainStep> void check_replicas(TrainStep& train_step, std::string_view when) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  using Scalar = typename Model::Scalar;
  const auto each_part = [&](const auto& visit) { detail::each_part_on_host(train_step, visit); };
  const std::uint64_t own[1] = {detail::hash_of_weights(train_step)};
  auto& policy_state = train_step.policy_state();
  const std::size_t apart = detail::ranks_of_replica(policy_state);
  if (detail::replicas_equal(policy_state.numbers_of_all(own), apart)) return;  // the same answer on all ranks
  NamedValues parameters;
  each_part([&](plan::Range part, const Scalar* values) {
    detail::add_parameter_hashes(parameters, Model::program.parameters(), Model::program.parts(), part, values, sizeof(Scalar));
  });
  detail::fail_replicas(when, policy_state.texts_of_all("-" + parameters.lines()), apart, policy_state.rank_names());
}

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "replicas.ipp"
#endif
