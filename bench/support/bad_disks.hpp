// SPDX-License-Identifier: Apache-2.0
// Commits on disks that fail, by errors at each operation and by what a crash leaves.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "../../tests/support/commit_trials.hpp"
#include "../../tests/support/disk_fault_trials.hpp"
#include "../../tests/support/said.hpp"
#include "../../tests/support/temporary_folder.hpp"
#include "commits.hpp"
#include "report.hpp"

namespace bench {

inline void disk_errors(Report& report, const std::string& scratch) {
  support::FaultTrials t;
  const support::TemporaryFolder words;
  (void)support::said(words, [&] {  // that a file system has no locks
    for (const int ranks : {1, 2}) {
      t += support::faults_in_commits(scratch, ranks, 30);
      t += support::faults_in_commits(scratch, ranks, 20);
      t += support::faults_in_commits(scratch, ranks, 20, false);
    }
    t += support::faults_in_saves(scratch);
  });
  report.add({.metric = "commits and files lost by a disk's error",
              .ours = static_cast<double>(t.lost),
              .unit = "trials",
              .must = {0.0},
              .note = std::to_string(t.trials) + " errors at each operation of a commit on 1 and 2 ranks, of a save"});
  report.add({.metric = "errors without path and reason", .ours = static_cast<double>(t.mute), .unit = "trials", .must = {0.0}});
  report.add({.metric = "trials whose next commit leaves something lying",
              .ours = static_cast<double>(t.left),
              .unit = "trials",
              .must = {0.0}});
  const std::string folder = scratch + "/in_place", file = folder + "/file";
  std::filesystem::create_directories(folder);
  const std::vector<char> bytes = checkpoint_bytes(file, 10'000);
  const auto in_place = support::at_each_operation(
      folder, [&] { write_in_place(file, bytes); }, [&] { write_in_place(file, bytes); },
      [&](support::FaultTrials& trials, bool) { trials.lost += !opens(file, skein::train::Verify::Whole); });
  report.add({.metric = "control: checkpoints lost by writing in place",
              .ours = static_cast<double>(in_place.lost),
              .unit = "trials",
              .must = {.bound = 1.0, .at_least = true},
              .note = std::to_string(in_place.trials) + " errors"});
}

inline void crashes(Report& report, const std::string& scratch) {
  support::CrashTrials all, control;
  const std::uint64_t trials = report.quick() ? 7 : 60;
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const bool exchange : {true, false})
      all += support::crash_in_commits(scratch, {.ranks = ranks, .exchange = exchange, .trials = trials});
  control += support::crash_in_commits(scratch, {.ranks = 2, .file_syncs = false, .trials = trials});
  report.add({.metric = "crash states in which an acknowledged commit is not found",
              .ours = static_cast<double>(all.lost + all.refused),
              .unit = "states",
              .must = {0.0},
              .note = std::to_string(all.states) + " different states, of commits of 1 to 4 ranks"});
  report.add({.metric = "control: the same, where files are not synced before they are renamed",
              .ours = static_cast<double>(control.lost + control.refused),
              .unit = "states",
              .must = {.bound = 1.0, .at_least = true},
              .note = "of " + std::to_string(control.states)});
}

}  // namespace bench
