// SPDX-License-Identifier: Apache-2.0
// The folder of a run: a folder step_00000500 for each commit, which has a shard of each rank and a manifest. A commit is written
// as step_00000500.partial, and its rename is the commit point: whoever dies before leaves the commits that there were, and a
// .partial that the next one sweeps away. What is left of one that was to take the place of another is mended by lock().
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint_writer.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// CommitFolder run("run");  run.lock();  shards[r] = run.write_shard(500, r, writer);  ...  run.publish(500, shards, facts, 3).
/// Every failure is a FileError.
class CommitFolder {
 public:
  explicit CommitFolder(std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  }
  CommitFolder(const CommitFolder&) = delete;
  CommitFolder& operator=(const CommitFolder&) = delete;
  ~CommitFolder();

  const std::string& path() const { return path_; }
  /// Where the commit of a step is, and where it is written.
  std::string commit(std::int64_t step) const;
  std::string partial(std::int64_t step) const { return commit(step) + ".partial"; }
  /// The steps that there are commits of, the last one first; of a folder that is not there none.
  std::vector<std::int64_t> steps() const;

  /// Makes the folder, keeps other processes from writing into it until this object or its process ends, and removes what commits
  /// that were broken off have left. Waits so many seconds for a process that is about to end, or whose machine died: an NFS
  /// server keeps its lock for a while. Where the file system has no locks, that is said on the error output.
  void lock(double seconds = 120);
  /// Writes what a rank has of the commit of a step; after it has returned, it is on the disk. Ranks call it at the same time. A
  /// folder that was removed or renamed since lock() is made again, and locked: a training goes on saving, and says so. Throws
  /// FileError where another process has locked the one that has its name now.
  WrittenFile write_shard(std::int64_t step, int rank, CheckpointWriter& shard) const;
  /// One process, when all shards are written: writes the manifest, with these facts, and renames: now it is a commit. Then
  /// removes those of earlier steps, but for the last `keep` with this one. Throws where a shard is not in the folder, or has
  /// another size than was written: the ranks' paths name different folders.
  void publish(std::int64_t step, const std::vector<WrittenFile>& shards, const FileMetadata& facts, int keep) const;

 private:
  void make_again() const;
  void recover() const;
  void sweep() const;
  void replace(std::int64_t step) const;
  /// Where the commit of a step is while another takes its place, on a file system that cannot exchange two names.
  std::string before(std::int64_t step) const { return commit(step) + ".before"; }

  std::string path_;
  mutable int lock_ = -1;  // make_again() takes another
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "commit_folder.ipp"
#endif
