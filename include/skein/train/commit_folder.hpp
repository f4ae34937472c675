// SPDX-License-Identifier: Apache-2.0
// The folder of a run: a folder step_00000500 for each commit, which has a shard of each rank and a manifest. A commit is written
// as step_00000500.partial, and its rename is the commit point: whoever dies before leaves the commits that there were, and a
// .partial that the next one sweeps away. Functions that write are rank 0's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint_writer.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// CommitFolder run("run");  run.lock();  run.prepare(500);  ... shards into run.partial(500) ...  run.publish(500, manifest, 3).
/// Every failure is a FileError.
class CommitFolder {
 public:
  explicit CommitFolder(std::string path) : path_(std::move(path)) {}
  CommitFolder(const CommitFolder&) = delete;
  CommitFolder& operator=(const CommitFolder&) = delete;
  ~CommitFolder();

  const std::string& path() const { return path_; }
  /// Where the commit of a step is, and where it is written.
  std::string commit(std::int64_t step) const;
  std::string partial(std::int64_t step) const { return commit(step) + ".partial"; }
  /// The steps that there are commits of, the last one first; of a folder that is not there none.
  std::vector<std::int64_t> steps() const;

  /// Makes the folder, and keeps other processes from writing into it, until this object or its process ends. Waits some seconds
  /// for one that is about to end.
  void lock();
  /// Removes what commits that were broken off have left, and makes the folder of the next one.
  void prepare(std::int64_t step) const;
  /// Writes the manifest, brings all to the disk, and renames: now it is a commit. Then removes those of earlier steps, but for
  /// the last `keep` with this one.
  void publish(std::int64_t step, CheckpointWriter& manifest, int keep) const;

 private:
  void sweep() const;

  std::string path_;
  int lock_ = -1;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "commit_folder.ipp"
#endif
