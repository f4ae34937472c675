// SPDX-License-Identifier: Apache-2.0
// Times of runs in a file, a line a run ("settings,ranks,seconds", and more numbers where an experiment has such), and the
// speed-up of one against that of one rank. What is no plain file, as /dev/null, keeps nothing, and is not read. Runs are
// compared at an equal batch of a rank, or at an equal batch of all ranks, by the same lines: these have the batch of a rank.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <skein/core/error.hpp>

namespace experiments {

/// A run of a file.
struct RecordedRun {
  int ranks = 0;
  double seconds = 0;
  std::vector<double> more{};
};

/// What the runs that are compared are recorded as: the same for any number of ranks, or of so many ranks; empty: so many have
/// none.
class RunSettings {
 public:
  RunSettings(const char* same) : RunSettings(std::string(same)) {}
  RunSettings(std::string same) : of_([same = std::move(same)](int) { return same; }) {}
  RunSettings(std::function<std::string(int)> of) : of_(std::move(of)) {}
  std::string of(int ranks) const { return of_(ranks); }

 private:
  std::function<std::string(int)> of_;
};

/// Settings by the options, `name(options)`, at their .batch of a rank; where they have a .global_batch, of each number of ranks
/// at its share of that.
template <class Options, class Name> RunSettings settings_by_ranks(const Options& o, const Name& name) {
  if (o.global_batch == 0) return name(o);
  return std::function<std::string(int)>([o, name](int ranks) -> std::string {
    if (ranks < 1 || o.global_batch % ranks != 0) return "";
    Options own = o;
    own.batch = o.global_batch / ranks;
    return name(own);
  });
}

/// Can what was written there be read again? A pipe would be waited for.
inline bool keeps_runs(const std::string& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored);
}

/// The runs with these settings, by their ranks; of several with as many ranks the last. Other lines are passed over.
inline std::vector<RecordedRun> recorded_runs(const std::string& file, const RunSettings& settings) {
  std::vector<RecordedRun> runs;
  if (!keeps_runs(file)) return runs;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    RecordedRun run;
    int read = 0;
    const std::size_t comma = std::min(line.find(','), line.size());
    const std::string begin = settings.of(std::atoi(line.c_str() + std::min(comma + 1, line.size())));
    if (begin.empty() || !line.starts_with(begin + ",")) continue;
    const char* at = line.c_str() + begin.size() + 1;
    if (std::sscanf(at, "%d,%lf%n", &run.ranks, &run.seconds, &read) != 2 || run.ranks < 1 || !(run.seconds > 0)) continue;
    for (at += read; *at == ',';) {
      char* end = nullptr;
      run.more.push_back(std::strtod(at + 1, &end));
      at = end;
    }
    std::erase_if(runs, [&](const RecordedRun& r) { return r.ranks == run.ranks; });
    runs.insert(std::upper_bound(runs.begin(), runs.end(), run, [](const auto& a, const auto& b) { return a.ranks < b.ranks; }),
                run);
  }
  return runs;
}

/// Seconds of a run of one rank with the same settings in the file, or 0.
inline double seconds_of_one(const std::string& file, const RunSettings& settings) {
  const std::vector<RecordedRun> runs = recorded_runs(file, settings);
  return !runs.empty() && runs.front().ranks == 1 ? runs.front().seconds : 0;
}

/// Does the file have a last line without an end, as an editor leaves it? What is added would become a part of that.
inline bool ends_within_a_line(const std::string& file) {
  if (!keeps_runs(file)) return false;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  char last = '\n';
  if (in && in.tellg() > 0) in.seekg(-1, std::ios::end).get(last);
  return last != '\n';
}

/// Adds a run to the file; returns its speed-up and efficiency as a sentence. Throws FileError where the file cannot be written.
inline std::string record_run(const std::string& file, const RunSettings& settings, int ranks, double seconds,
                              const std::vector<double>& more = {}) {
  const bool unended = ends_within_a_line(file);
  std::ofstream out(file, std::ios::app);
  out << (unended ? "\n" : "") << settings.of(ranks) << ',' << ranks << ',' << seconds;
  for (const double v : more) out << ',' << v;
  if (!(out << std::endl)) throw skein::FileError(file, -1, "cannot be written");
  const double one = seconds_of_one(file, settings);
  if (!(one > 0)) return "no run of one rank with these settings in " + file + ": no speed-up";
  char text[80];
  std::snprintf(text, sizeof text, "speed-up %.2f, efficiency %.2f", one / seconds, one / seconds / ranks);
  return text;
}

/// What is said of a run of more ranks that found none of one rank at its batch of a rank, where the file has one at its batch of
/// all ranks: the flag that compares these. Else empty.
template <class Options, class Name>
std::string other_comparison(const std::string& file, const Options& o, int ranks, const Name& name) {
  if (o.global_batch != 0 || seconds_of_one(file, settings_by_ranks(o, name)) > 0) return "";
  Options all = o;
  all.global_batch = o.batch * ranks;
  if (!(seconds_of_one(file, settings_by_ranks(all, name)) > 0)) return "";
  return "the file has a run of one rank with the same samples of all ranks in a batch: --global-batch " +
         std::to_string(all.global_batch) + " compares with that";
}

/// A run, and those of other ranks that the file has with as many numbers more: by their ranks. The run alone where the file
/// keeps nothing, or there is none.
inline std::vector<RecordedRun> runs_with(const RecordedRun& own, const std::string& file, const RunSettings& settings) {
  std::vector<RecordedRun> runs = recorded_runs(file, settings);
  std::erase_if(runs, [&](const RecordedRun& r) { return r.more.size() != own.more.size(); });
  if (runs.empty()) runs.push_back(own);
  return runs;
}

}  // namespace experiments
