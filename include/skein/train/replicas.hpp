// SPDX-License-Identifier: Apache-2.0
// Are the weights of the ranks still the same, where the policy promises it? A flipped bit of memory, a callback that changes one
// rank's weights, a rank that missed an update are found by a hash of each rank's weights, and named.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../parallel/policy.hpp"
#include "../plan/program.hpp"
#include "hash.hpp"
#include "host_copy.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The parameters by name, each with a hash of its values: what ranks tell each other where replicas differ.
std::string parameter_hashes(std::span<const plan::Entry> entries, std::span<const plan::PathPart> paths, const void* values,
                             std::size_t scalar_bytes);
/// Throws where the weights of replicas differ. Where more than half of the ranks have the same, the others are named.
[[noreturn]] void fail_replicas(std::string_view when, const std::vector<std::string>& texts);
}  // namespace detail

SKEIN_BEGIN_COLD

/// Throws CommError, on all ranks, where replicas that the policy promises to be equal are not: it names the first parameter that
/// differs, and the ranks. `when`: "at the end of fit". Collective: one all_gather of 8 bytes where all are equal.
template <class TrainStep> void check_replicas(TrainStep& train_step, std::string_view when) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  using Scalar = typename Model::Scalar;
  HostCopy<Scalar, typename Model::device> copy;
  const auto arena = train_step.whole_parameters();
  const Scalar* values = copy.read(arena.data, arena.size, train_step.model().where());
  const std::uint64_t own[1] = {hash64(values, arena.size * sizeof(Scalar))};
  auto& policy_state = train_step.policy_state();
  const std::vector<std::uint64_t> all = policy_state.numbers_of_all(own);
  if (std::ranges::all_of(all, [&](std::uint64_t hash) { return hash == own[0]; }))
    return;  // the same answer on all ranks: one that differs differs from some
  detail::fail_replicas(when, policy_state.texts_of_all(detail::parameter_hashes(
                                  Model::program.parameters(), Model::program.parts(), values, sizeof(Scalar))));
}

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "replicas.ipp"
#endif
