// SPDX-License-Identifier: Apache-2.0
// Commits and saves of which each file operation fails in turn: is what there was before still there, does the message say why,
// and does the next one sweep up what is left.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <skein/core/error.hpp>
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/checkpoint_writer.hpp>
#include <skein/train/commit_folder.hpp>

#include "commit_trials.hpp"
#include "file_calls.hpp"

namespace support {

struct FaultTrials {
  long trials = 0;
  long lost = 0;  ///< what was acknowledged is not found
  long mute = 0;  ///< another error than a FileError, or one without the path and the reason
  long left = 0;  ///< the next commit leaves something lying
  FaultTrials& operator+=(const FaultTrials& o) {
    trials += o.trials, lost += o.lost, mute += o.mute, left += o.left;
    return *this;
  }
};

/// Calls begin(); work(); look(trials, whether work() threw) with a fault at each of the operations of work() on what is below
/// `folder`: no space, an I/O error, an interrupted call, a short write, and no space from there on.
template <class Begin, class Work, class Look>
FaultTrials at_each_operation(const std::string& folder, Begin&& begin, Work&& work, Look&& look) {
  struct Fault {
    int error;
    bool lasting;
  };
  constexpr Fault faults[] = {{ENOSPC, false}, {EIO, false}, {EINTR, false}, {0, false}, {ENOSPC, true}};
  FileCalls& calls = FileCalls::all();
  FaultTrials t;
  for (const Fault& fault : faults)
    for (long n = 1;; ++n) {
      begin();
      std::string said;
      bool threw = true, typed = true;
      calls.fail(folder, n, fault.error, fault.lasting);
      try {
        work();
        threw = false;
      } catch (const skein::FileError& e) { said = e.what(); } catch (const std::exception&) {
        typed = false;
      }
      const bool last = n > calls.count(), failed = calls.failed();
      calls.end();
      if (last) break;
      if (!failed) continue;
      ++t.trials;
      const bool passes = fault.error == EINTR || fault.error == 0;  // what a program goes on from
      const bool says = said.find(folder) != said.npos && said.find(std::strerror(fault.error)) != said.npos;
      t.mute += threw && (passes || !typed || !says);
      look(t, threw);
    }
  return t;
}

/// A commit of a step, after those of steps 10 and 20: 20 takes the place of one.
inline FaultTrials faults_in_commits(const std::string& scratch, int ranks, std::int64_t step, bool exchange = true) {
  namespace fs = std::filesystem;
  const std::string run = scratch + "/run", base = scratch + "/base";
  fs::remove_all(base);
  fs::create_directory(base);
  for (const int version : {1, 2}) write_commit(skein::train::CommitFolder(base), 10 * version, version, 1);
  const auto commit = [&](std::int64_t at, int version) {
    skein::train::CommitFolder folder(run);
    folder.lock();
    write_commit(folder, at, version, ranks);
  };
  const auto stray = [&](const std::string& name, bool later) {  // what is neither the lock nor a commit, whole or not
    return name != ".lock" && (!name.starts_with("step_000000") || (later && name.size() != std::string("step_00000010").size()));
  };
  FileCalls::all().without_exchange(!exchange);
  const FaultTrials all = at_each_operation(
      run,
      [&] {
        fs::remove_all(run);
        fs::copy(base, run, fs::copy_options::recursive);
      },
      [&] { commit(step, 3); },
      [&](FaultTrials& t, bool threw) {
        bool left = false;
        for (const auto& e : fs::directory_iterator(run)) left = left || stray(e.path().filename().string(), false);
        const int found = found_version(run);
        t.lost += found != 3 && !(found == 2 && threw);
        commit(step + 10, 4);
        t.lost += found_version(run) != 4;
        long names = 0;
        for (const auto& e : fs::recursive_directory_iterator(run)) {
          left = left || e.path().extension() == ".partial" || (e.is_directory() && stray(e.path().filename().string(), true));
          names += e.is_directory();
        }
        t.left += left || names != 2;  // those that stay
      });
  FileCalls::all().without_exchange(false);
  return all;
}

/// A file that takes the place of another.
inline FaultTrials faults_in_saves(const std::string& scratch) {
  const std::string folder = scratch + "/saves", file = folder + "/file";
  std::filesystem::create_directories(folder);
  const auto save = [&](float value) {
    const std::vector<float> values(50, value);
    skein::train::CheckpointWriter writer;
    writer.add("values", std::span<const float>(values));
    writer.commit(file);
  };
  const auto found = [&] {
    std::vector<float> values(50);
    try {
      skein::train::CheckpointReader(file).read("values", std::span<float>(values));
    } catch (const skein::FileError&) { return 0.0f; }
    return values.back();
  };
  return at_each_operation(
      folder, [&] { save(1); }, [&] { save(2); },
      [&](FaultTrials& t, bool threw) {
        const float there = found();
        t.lost += there != 2.0f && !(threw && there == 1.0f);
        save(3);
        t.lost += found() != 3.0f;
        for (const auto& e : std::filesystem::directory_iterator(folder)) t.left += e.path() != file;
      });
}

}  // namespace support
