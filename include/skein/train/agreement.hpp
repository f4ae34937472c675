// SPDX-License-Identifier: Apache-2.0
// What the ranks of a training must have in common, compared before it is too late: options, hyper-parameters, sizes and places
// at the start of a fit, files after load(). Where all agree that is one all_gather of three hashes; where they
// do not, every rank throws the same CommError, which names the first value that differs and who has which.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/named_values.hpp"
#include "../data/view.hpp"
#include "../optim/groups.hpp"
#include "../parallel/policy.hpp"
#include "../plan/program.hpp"
#include "agree_on_failure.hpp"
#include "hash.hpp"
#include "options.hpp"
#include "training_position.hpp"

namespace skein::inline SKEIN_ABI::train {

/// For a Trainer without a policy: prints a line, once a process and on rank 0, where several ranks were started together.
void warn_of_ranks_apart();

/// There may be other ranks, with which one has to agree.
template <class PolicyState> inline constexpr bool may_have_others = !std::same_as<PolicyState, parallel::PolicyState>;

/// What a rank believes: what all must have alike, and what those that train must (a server needs no data).
struct Agreement {
  NamedValues all{}, training{};
  bool trains = true;
  std::uint64_t own_part = 0;  ///< of Partition::local: hash_of_part() of the training set
};

/// Options of a fit that all ranks give alike. Not among them: threads, callbacks, progress, prefetching.
void describe(const FitOptions& options, NamedValues& to);
/// Those of an evaluation.
void describe(const EvaluateOptions& options, NamedValues& to);
/// A data set of each rank, `set` is "training" or "validation": its size, where all see the whole set, and its samples.
void describe(const data::DatasetView& data, std::string_view set, bool shared, NamedValues& to);
/// A hash of this rank's samples under Partition::local, where the policy exchanges in each step: of their number and of 16 of
/// them. 0 elsewhere, and where they are all alike, drawn at random or not to be had.
std::uint64_t hash_of_part(const data::DatasetView& data, const FitOptions& options, parallel::SameWeights same);
/// The rules of the optimizer's groups; of a predicate no more than that there is one.
void describe(const optim::Groups& groups, NamedValues& to);
/// The kinds and options of a network's layers, by their names in it: what shapes and costs do not say.
void describe(std::span<const plan::LayerNode> layers, std::span<const plan::PathPart> paths, NamedValues& to);
/// Where a training stands.
void describe(const TrainingPosition& position, std::int64_t steps, NamedValues& to);

namespace detail {
/// The hashes of a rank, as they travel.
struct AgreementHashes {
  static constexpr std::size_t count = 3;
  std::uint64_t numbers[count];
};
AgreementHashes hashes_of(const Agreement& own);
/// All ranks have the same.
bool same(const std::vector<std::uint64_t>& of_all);
/// Throws CommError where the parts of all ranks that train are one and the same.
void check_parts(std::string_view call, const std::vector<std::uint64_t>& of_all);
/// What a rank tells the others where hashes differ, and what all make of it: throws CommError, "fit: `.lr` of Adam is 0.1 on
/// rank 0, 0.01 on rank 1: ...".
std::string text_of(const Agreement& own);
[[noreturn]] void fail_disagreement(std::string_view call, const std::vector<std::string>& texts, const comm::RankNames& names);
}  // namespace detail

/// Every rank says what it believes; where two differ, and where parts of their own do not, all throw the same CommError.
/// Collective: one all_gather of 24 bytes where all agree. `call` is the public function, as users know it.
template <class PolicyState> void agree(std::string_view call, PolicyState& policy_state, const Agreement& own) {
  const std::vector<std::uint64_t> of_all = policy_state.numbers_of_all(detail::hashes_of(own).numbers);
  if (detail::same(of_all)) return detail::check_parts(call, of_all);
  detail::fail_disagreement(call, policy_state.texts_of_all(detail::text_of(own)), policy_state.rank_names());
}

namespace detail {
[[noreturn]] void fail_files(std::string_view call, const std::vector<std::string>& texts, const comm::RankNames& names);
}
/// All ranks have read the same file, or copies of it: `hash`. Throws CommError where not: with the paths, or with why a rank
/// could not read its own; there it returns. `call` is the public function. Collective: one all_gather of 8 bytes where they
/// have.
template <class PolicyState> void agree_on_file(std::string_view call, PolicyState& policy_state, const std::string& path,
                                                std::uint64_t hash, const std::exception_ptr& error) {
  const std::uint64_t own[1] = {error ? 0 : hash | 1};
  bool equal = true;
  for (const std::uint64_t other : policy_state.numbers_of_all(own)) equal = equal && other == own[0] && other != 0;
  if (equal) return;
  const std::vector<std::string> texts = policy_state.texts_of_all(error ? "!" + reason_of(error) : path);
  if (!error) detail::fail_files(call, texts, policy_state.rank_names());
}

/// read(before_change) of a file on every rank, as read_together() has it: the file is the same on all.
template <class PolicyState, class Read>
void read_on_all_ranks(std::string_view call, PolicyState& policy_state, const std::string& path, const Read& read) {
  read_together(
      read, [&](std::uint64_t hash, const std::exception_ptr& error) { agree_on_file(call, policy_state, path, hash, error); });
}

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "agreement.ipp"
#endif
