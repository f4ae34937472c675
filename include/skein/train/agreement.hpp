// SPDX-License-Identifier: Apache-2.0
// What the ranks of a training must have in common, compared before it is too late: options, hyper-parameters, sizes and places
// at the start of a fit, files after load(). Where all agree that is one all_gather of a hash or two; where
// they do not, every rank throws the same CommError, which names the first value that differs and who has which.
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

/// Options of a fit that all ranks give alike. Not among them: threads, callbacks, progress, prefetching, graphs.
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
void describe(const TrainingPosition& place, std::int64_t steps, NamedValues& to);

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
[[noreturn]] void fail_disagreement(std::string_view call, const std::vector<std::string>& texts);
}  // namespace detail

/// Every rank says what it believes; where two differ, and where parts of their own do not, all throw the same CommError.
/// Collective: one all_gather of 24 bytes where all agree. `call` is the public function, as users know it.
template <class PolicyState> void agree(std::string_view call, PolicyState& policy_state, const Agreement& own) {
  const std::vector<std::uint64_t> of_all = policy_state.numbers_of_all(detail::hashes_of(own).numbers);
  if (detail::same(of_all)) return detail::check_parts(call, of_all);
  detail::fail_disagreement(call, policy_state.texts_of_all(detail::text_of(own)));
}

/// What a rank has read, or why it could not.
struct LoadedFile {
  std::string path{};
  std::uint64_t hash = 0;
  std::string failure{};
  std::exception_ptr error{};

  /// Keeps the error that is being handled.
  void fail(const std::exception& e) { failure = e.what(), error = std::current_exception(); }
  /// Throws it.
  void check() const {
    if (error) std::rethrow_exception(error);
  }
};
namespace detail {
[[noreturn]] void fail_files(std::string_view call, const std::vector<std::string>& texts);
}
/// All ranks have read the same file, or copies of it. Throws CommError where not: with the paths, or with why a rank could not
/// read its own. `call` is the public function. Collective: one all_gather of 8 bytes where they have.
template <class PolicyState> void agree_on_file(std::string_view call, PolicyState& policy_state, const LoadedFile& file) {
  const std::uint64_t own[1] = {file.error ? 0 : file.hash | 1};
  bool equal = true;
  for (const std::uint64_t hash : policy_state.numbers_of_all(own)) equal = equal && hash == own[0] && hash != 0;
  if (equal) return;
  const std::vector<std::string> texts = policy_state.texts_of_all(file.error ? "!" + file.failure : file.path);
  if (!file.error) detail::fail_files(call, texts);
}

/// read(before_change) on every rank: it calls before_change(hash) when the file is read and checked, and then changes what is
/// trained. Where a rank cannot read its file, or files differ, all throw, and nothing is changed on any: that rank its own
/// error, the others CommError. Collective: two all_gathers of 8 bytes where all is well.
template <class PolicyState, class Read>
void read_on_all_ranks(std::string_view call, PolicyState& policy_state, const std::string& path, const Read& read) {
  LoadedFile file{path};
  bool met = false, agreed = false;
  try {
    read([&](std::uint64_t hash) {
      file.hash = hash, met = true;
      agree_on_file(call, policy_state, file);
      agreed = true;
    });
  } catch (const std::exception& e) { file.fail(e); }
  if (!met || agreed) agree_on_file(call, policy_state, file);  // the others are in before_change, or behind it as this rank is
  file.check();
}

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "agreement.ipp"
#endif
