// SPDX-License-Identifier: Apache-2.0
// Timelines of pipelines as text, so that a picture of a measured run can be drawn again: a line "timeline,TITLE,RANKS,STAGES",
// then one "RANK,STAGE,TASK,MICRO,BEGIN,END" for each of its steps.
#pragma once
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <skein/core/error.hpp>
#include <skein/plan/timeline.hpp>

namespace experiments {

/// Times with six digits. A title is ended by its last two commas.
inline void write_timelines(const std::string& path, const std::vector<skein::plan::Timeline>& timelines) {
  std::ofstream file(path);
  for (const skein::plan::Timeline& t : timelines) {
    file << "timeline," << t.title << "," << t.ranks << "," << t.stages << "\n";
    for (const skein::plan::TimedStep& s : t.steps)
      file << s.rank << "," << s.step.stage << "," << static_cast<int>(s.step.task) << "," << s.step.micro << "," << s.begin
           << "," << s.end << "\n";
  }
  if (!file.flush()) throw skein::FileError(path, -1, "the timelines cannot be written there");
}

/// Throws FileError that names the line which is none of the two.
inline std::vector<skein::plan::Timeline> read_timelines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw skein::FileError(path, -1, "cannot be read");
  std::vector<skein::plan::Timeline> timelines;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    int rank = 0, stage = 0, task = 0, micro = 0, stages = 0;
    double begin = 0, end = 0;
    if (line.starts_with("timeline,")) {
      const std::size_t second = line.rfind(','), first = line.rfind(',', second - 1);
      if (first != std::string::npos && first >= 9 && std::sscanf(line.c_str() + first, ",%d,%d", &rank, &stages) == 2) {
        timelines.push_back({line.substr(9, first - 9), rank, stages, {}});
        continue;
      }
    } else if (!timelines.empty() &&
               std::sscanf(line.c_str(), "%d,%d,%d,%d,%lf,%lf", &rank, &stage, &task, &micro, &begin, &end) == 6 && task >= 0 &&
               task < 5) {
      timelines.back().steps.push_back({{static_cast<skein::plan::Task>(task), stage, micro}, rank, begin, end});
      continue;
    }
    throw skein::FileError(path, -1, "line " + std::to_string(number) + " is neither a timeline nor a step of one: " + line);
  }
  return timelines;
}

}  // namespace experiments
