// SPDX-License-Identifier: Apache-2.0
// Writes the commits of a training: each rank its shard, rank 0 the manifest when all shards are there. The files are written
// while the ranks wait, or by a thread while they train on; that thread makes no collectives, so that what ranks tell each other
// of a commit is exchanged by the fit: after some steps, before the next commit, at the end.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "commit_folder.hpp"
#include "commit_options.hpp"
#include "training_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// All ranks call it after work on a commit: what each has written, or why it could not (`failure`). Where one could
/// not, all throw: that rank a FileError or what its own work threw, the others a CommError, with the reason.
std::vector<WrittenFile> shards_of_all(SavedTraining& training, const std::string& path, const WrittenFile& own,
                                       const FileFailure& failure);
}  // namespace detail

/// All ranks call the same functions of theirs at the same steps. Where one cannot write, all throw, and the commits that there
/// were stay; with `.async` the next call throws. A commit is on the disk when commit() has returned, with `.async` when the next
/// commit() or finish() has.
class CommitWriter {
 public:
  CommitWriter(const CommitFolder& folder, CommitOptions options, SavedTraining& training)
      : folder_(folder), options_(options), training_(training) {}
  CommitWriter(const CommitWriter&) = delete;
  CommitWriter& operator=(const CommitWriter&) = delete;
  /// Waits for the thread. Without finish(), as after an exception, a commit of several ranks that they have not agreed on is
  /// none.
  ~CommitWriter();

  /// Writes the training as it is now; with `.async` copies it for the thread that writes, when the commit before is done.
  void commit(const RecordsView& records);
  /// After each step: with `.async`, takes the commit further that is under way, if it has got so far. An exchange after
  /// 1, 2, 4, 8 ... steps, so for ranks that are in step: others agree at the next commit.
  void after_step();
  /// Waits for the commit that is under way.
  void finish();

 private:
  enum class Stage { none, shards, manifest };

  void begin(Stage stage);
  void work();
  void wait();
  void agree();

  const CommitFolder& folder_;
  CommitOptions options_;
  SavedTraining& training_;
  Stage stage_ = Stage::none;
  std::int64_t step_ = 0, steps_since_ = 0;
  CheckpointWriter writer_;
  detail::SnapshotMemory memory_;
  FileMetadata facts_;
  WrittenFile own_;
  std::vector<WrittenFile> shards_;
  FileFailure failure_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "commit_writer.ipp"
#endif
