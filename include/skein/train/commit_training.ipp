// SPDX-License-Identifier: Apache-2.0
// The bodies of commit_training.hpp.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <span>

#include "../core/text.hpp"
#include "archive.hpp"
#include "commit_training.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {
namespace detail {

/// What was read is bad, or a part of it is not there or cannot be read any more. A sound commit may fail with other errors: of
/// too many open files, of memory, of rights, of a server that is away.
inline bool is_damage(const FileError& e) {
  const int errors_of_disks[] = {0, ENOENT, ENOTDIR, ELOOP, EIO, ENODATA, EILSEQ, EREMOTEIO, EBADMSG, EUCLEAN};
  return std::ranges::find(errors_of_disks, e.error()) != std::end(errors_of_disks);
}

/// The newest commit of a step up to `last` that this rank finds whole. Reads all of it.
inline FoundCommit newest_commit(const CommitFolder& folder, std::int64_t last) {
  FoundCommit found;
  for (const std::int64_t step : folder.steps()) {
    if (step > last) continue;
    try {
      found.hash = CheckpointReader(folder.commit(step)).header_hash();
      found.step = step;
      return found;
    } catch (const VersionError&) { throw; } catch (const FileError& e) {
      if (!is_damage(e)) throw;
      found.skipped.push_back(e.what());
      if (found.failure.empty()) found.failure = e.what();
    }
  }
  return found;
}

/// Nothing: all ranks have found the same. Else the last step that all may have. Throws CommError where some have none.
inline std::optional<std::int64_t> next_to_try(const std::vector<FoundCommit>& of_ranks, const std::string& folder,
                                               const comm::RankNames& names) {
  std::int64_t least = std::int64_t{1} << 62, most = -1;
  int without = 0;
  bool same = true;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const FoundCommit& found = of_ranks[r];
    if (found.step < 0) without = static_cast<int>(r);
    least = std::min(least, found.step);
    most = std::max(most, found.step);
    same = same && found.step == of_ranks[0].step && found.hash == of_ranks[0].hash;
  }
  if (same) return {};
  if (least < 0) {
    const std::string& failure = of_ranks[static_cast<std::size_t>(without)].failure;
    throw CommError(text("fit: {} finds no commit in '{}' that is whole, another rank finds that of step {}: {}",
                         names.name(without), folder, most,
                         failure.empty() ? "the folder has to be on a file system that all ranks share"
                                         : failure + ": see that this rank can read it"));
  }
  return least < most ? least : least - 1;  // one step of two trainings: none of the two
}

/// No rank has found a commit: throws, on all, where one has skipped some, which a training that begins anew would remove.
inline void check_begin(const std::vector<FoundCommit>& of_ranks, int rank, const std::string& folder,
                        const comm::RankNames& names) {
  const bool own = !of_ranks[static_cast<std::size_t>(rank)].skipped.empty();
  for (std::size_t r = 0; r < of_ranks.size(); ++r)
    if (!of_ranks[r].skipped.empty() && (!own || r == static_cast<std::size_t>(rank)))
      throw FileError(folder, -1,
                      text("has commits of a training{}, and none of them is whole: {}: move the folder away to begin anew{}",
                           own ? "" : " on " + names.name(static_cast<int>(r)), of_ranks[r].skipped.front(),
                           own ? "" : "; this rank sees none: the folder has to be on a file system that all ranks share"));
}

/// All ranks work on a folder at a time: what the work of each returns. Where one's throws, all throw: that rank the same again.
inline std::vector<std::string> said_by_all(const CommitFolder& folder, SavedTraining& training,
                                            const std::function<std::string()>& work) {
  std::string own;
  FileFailure failure;
  while_ranks_meet(training, [&] { failure.note([&] { own = work(); }); });
  return agree_on_failure(
      training, own, failure.reason, [&] { std::rethrow_exception(failure.exception); },
      [&](int rank, const std::string& reason) {
        return text("fit: rank {} cannot use the .checkpoint folder {}: {}", rank, in_quotes(folder.path()), reason);
      });
}

SKEIN_INLINE void lock_for_ranks(CommitFolder& folder, SavedTraining& training) {
  (void)said_by_all(folder, training, [&] {
    if (training.rank() == 0) folder.lock();
    return std::string();
  });
}

SKEIN_INLINE void say_skipped(const FoundCommit& found, const std::string& folder) {
  for (const std::string& why : found.skipped) std::fprintf(stderr, "fit: a checkpoint is skipped: %s\n", why.c_str());
  if (!found.skipped.empty())
    std::fprintf(stderr, "fit: goes on from step %lld of %s\n", static_cast<long long>(found.step), in_quotes(folder).c_str());
}

/// All ranks read something of a commit, as read_together() has it. On a rank that cannot, throws FileError where that is the
/// file's fault, else what its own reading threw, a policy's or a communicator's; on the others CommError. `hint` ends the
/// sentence where a file that can be read does not fit.
inline void read_on_all(const std::string& path, SavedTraining& training, const std::function<void(const FileRead&)>& read,
                        const std::string& hint = {}) {
  read_together(read, [&](std::uint64_t, const std::exception_ptr& error) {
    const FileFailure failure = FileFailure::of_reading(error, hint);
    (void)agree_on_failure(
        training, {}, failure.reason, [&] { failure.raise(path, "cannot be loaded: "); },
        [&](int rank, const std::string& reason) { return text("fit: rank {} could not load {}: {}", rank, path, reason); });
  });
}

SKEIN_INLINE CommitRecords records_of_commit(const std::string& path, SavedTraining& training) {
  CommitRecords records;
  read_on_all(path, training, [&](const FileRead&) {
    CheckpointReader reader(path, Verify::Table);
    reader.read_object("place", records.position);
    records.kept.read(reader);
  });
  return records;
}

SKEIN_INLINE void check_commit(const CommitFolder& folder, SavedTraining& training, const std::function<void()>& check) {
  (void)said_by_all(folder, training, [&] { return check(), std::string(); });
}

SKEIN_INLINE LoadedTraining load_commit(const std::string& path, SavedTraining& training) {
  LoadedTraining loaded;
  read_on_all(
      path, training,
      [&](const FileRead& before_change) { loaded = load_training(path, training, Verify::Table, before_change); },
      "; if that is the commit of another training, give this one a .checkpoint.folder of its own");
  training.start_again();
  return loaded;
}

}  // namespace detail

SKEIN_INLINE FoundCommit find_commit(const CommitFolder& folder, SavedTraining& training) {
  std::vector<std::string> skipped;
  for (std::int64_t last = std::int64_t{1} << 62;;) {
    FoundCommit found;
    const std::vector<std::string> texts = detail::said_by_all(folder, training, [&] {
      found = detail::newest_commit(folder, last);
      found.skipped.insert(found.skipped.begin(), skipped.begin(), skipped.end());
      const std::vector<std::byte> bytes = to_bytes(found);
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    std::vector<FoundCommit> of_ranks(texts.size());
    for (std::size_t r = 0; r < texts.size(); ++r)
      from_bytes(byte_span(texts[r]), of_ranks[r], "what a rank says of its commits");
    if (const auto next = detail::next_to_try(of_ranks, folder.path(), training.rank_names())) {
      last = *next;
      skipped = found.skipped;
      if (found.step > last) skipped.push_back(folder.commit(found.step) + ": another rank cannot read it, or reads another");
      continue;
    }
    if (found.step < 0) detail::check_begin(of_ranks, training.rank(), folder.path(), training.rank_names());
    return found;
  }
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
