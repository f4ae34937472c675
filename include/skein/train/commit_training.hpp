// SPDX-License-Identifier: Apache-2.0
// Which commit of a folder a program that is started again goes on from: the newest one that is whole on every rank. Collective.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "commit_folder.hpp"
#include "training_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// A commit that a training can go on from.
struct FoundCommit {
  std::int64_t step = -1;            ///< -1: the folder has none
  std::uint64_t hash = 0;            ///< of its manifest
  std::vector<std::string> skipped;  ///< why later ones, and those that some rank could not read, were not taken
  std::string failure;               ///< of this rank alone: why the newest that it looked at last is not whole; "": it saw none

  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & step & hash & skipped & failure); }
};
/// The newest commit that is whole on all ranks, with why later ones are not. All ranks call it: one exchange where they find the
/// same. A commit is skipped where it is damaged; where it cannot be read for another reason (too many open files, rights), all
/// throw. So they do where one of them sees commits and none that is whole: a training would begin anew, and remove them.
FoundCommit find_commit(const CommitFolder& folder, SavedTraining& training);

namespace detail {
/// Rank 0 locks the folder; all throw where it cannot.
void lock_for_ranks(CommitFolder& folder, SavedTraining& training);
/// Says that commits were skipped, on the error output.
void say_skipped(const FoundCommit& found, const std::string& folder);
/// What of a commit is looked at before anything of it is taken.
struct CommitRecords {
  TrainingPosition position{};
  KeptObjects kept{};
};
/// All ranks: those of a commit that find_commit() has found. Where one cannot read them, all throw: a FileError where that is
/// the file's fault, else what its reading threw; the others CommError.
CommitRecords records_of_commit(const std::string& path, SavedTraining& training);
/// All ranks: where the check of one throws, all throw: that rank the same again.
void check_commit(const CommitFolder& folder, SavedTraining& training, const std::function<void()>& check);
/// All ranks: what find_commit() has found. Its hashes were checked, so that its tables are now. Where one cannot read it, all
/// throw, as above, and nothing is changed on any.
LoadedTraining load_commit(const std::string& path, SavedTraining& training);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "commit_training.ipp"
#endif
