// SPDX-License-Identifier: Apache-2.0
// Commits of several ranks, which say of which version they are, what a program that is started again finds of them, and the
// crash states of a record of some.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <skein/core/error.hpp>
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/checkpoint_writer.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/commit_training.hpp>

#include "crash_states.hpp"
#include "no_training.hpp"

namespace support {

constexpr std::int64_t values_of_commit = 300;

/// A commit of so many ranks, threads that write a shard each. Throws what the first of them does.
inline void write_commit(const skein::train::CommitFolder& folder, std::int64_t step, int version, int ranks, int keep = 2) {
  namespace st = skein::train;
  const std::vector<float> values(values_of_commit, static_cast<float>(version));
  std::vector<st::WrittenFile> shards(static_cast<std::size_t>(ranks));
  std::vector<std::exception_ptr> errors(shards.size());
  const auto write = [&](int rank) {
    try {
      st::CheckpointWriter shard;
      const std::int64_t begin = values_of_commit * rank / ranks, end = values_of_commit * (rank + 1) / ranks;
      shard.add_values("values", st::SectionType::float32, skein::Extents{1, {values_of_commit}}, begin, end,
                       values.data() + begin, values_of_commit);
      if (rank == 0) shard.add_object("version", version);
      shards[static_cast<std::size_t>(rank)] = folder.write_shard(step, rank, shard);
    } catch (...) { errors[static_cast<std::size_t>(rank)] = std::current_exception(); }
  };
  std::vector<std::thread> others;
  for (int r = 1; r < ranks; ++r) others.emplace_back(write, r);
  write(0);
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  folder.publish(step, shards, {{"step", std::to_string(step)}}, keep);
}

/// The version of the commit that a program goes on from when it is started again; 0: there is none; -1: it refuses to.
inline int found_version(const std::string& path) {
  namespace st = skein::train;
  try {
    st::CommitFolder folder(path);
    folder.lock();
    NoTraining training;
    const st::FoundCommit found = st::find_commit(folder, training);
    if (found.step < 0) return 0;
    st::CheckpointReader reader(folder.commit(found.step), st::Verify::Table);
    std::vector<float> values(values_of_commit);
    int version = -1;
    reader.read("values", std::span<float>(values));
    reader.read_object("version", version);
    reader.finish();
    return std::count(values.begin(), values.end(), static_cast<float>(version)) == values_of_commit ? version : -1;
  } catch (const skein::FileError&) { return -1; }
}

/// What a record of commits leaves at a crash.
struct CrashTrials {
  long states = 0, lost = 0,
       refused = 0;  // lost: a version that was acknowledged is not found; refused: none is, or it is damaged
  CrashTrials& operator+=(const CrashTrials& o) {
    states += o.states, lost += o.lost, refused += o.refused;
    return *this;
  }
};
struct CrashOptions {
  int ranks = 1;
  bool exchange = true;       ///< the file system can exchange two names
  bool file_syncs = true;     ///< false: a control
  bool folder_syncs = true;   ///< false: another
  std::uint64_t trials = 12;  ///< at each operation
};
/// Records commits of steps 10, 20, 20 again and 30, of versions 1 to 4, of which two stay, below a folder that is there; then
/// opens what each crash may leave. Different states alone count.
inline CrashTrials crash_in_commits(const std::string& scratch, const CrashOptions& o) {
  const std::string run = scratch + "/run", crashed = scratch + "/crashed";
  std::filesystem::remove_all(run);
  std::filesystem::create_directories(run);
  FileCalls& calls = FileCalls::all();
  calls.without_exchange(!o.exchange);
  calls.record(run);
  {
    skein::train::CommitFolder folder(run);
    folder.lock();
    int version = 0;
    for (const std::int64_t step : {10, 20, 20, 30}) {
      write_commit(folder, step, ++version, o.ranks);
      calls.mark(version);
    }
  }
  const CrashStates states(calls.end(), run, o.file_syncs, o.folder_syncs);
  calls.without_exchange(false);
  CrashTrials t;
  std::set<std::size_t> seen;
  for (std::size_t end = 0; end <= states.size(); ++end)
    for (std::uint64_t trial = 0; trial < o.trials; ++trial) {
      const DiskState state = states.state(end, trial);
      const int acknowledged = states.mark_before(end);
      if (!seen.insert(std::hash<std::string>{}(std::to_string(acknowledged) + state.text())).second) continue;
      std::filesystem::create_directories(crashed);
      state.write(crashed);
      const int found = found_version(crashed);
      ++t.states;
      t.refused += found < 0;
      t.lost += found >= 0 && found < acknowledged;
      t.lost += found > acknowledged + 1;
      std::filesystem::remove_all(crashed);
    }
  return t;
}

}  // namespace support
