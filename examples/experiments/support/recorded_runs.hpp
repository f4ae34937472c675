// SPDX-License-Identifier: Apache-2.0
// Times of runs in a file, a line a run ("settings,ranks,seconds"), and the speed-up of one against that of one rank.
#pragma once
#include <cstdio>
#include <fstream>
#include <string>

#include <skein/core/error.hpp>

namespace experiments {

/// Seconds of a run of one rank with the same settings in the file, or 0. Other lines are passed over.
inline double seconds_of_one(const std::string& file, const std::string& settings) {
  std::ifstream in(file);
  double found = 0;
  for (std::string line; std::getline(in, line);)
    if (double s = 0;
        line.starts_with(settings + ",1,") && std::sscanf(line.c_str() + settings.size() + 3, "%lf", &s) == 1 && s > 0)
      found = s;
  return found;
}

/// Adds a run to the file; returns its speed-up and efficiency as a sentence. Throws FileError where the file cannot be written.
inline std::string record_run(const std::string& file, const std::string& settings, int ranks, double seconds) {
  std::ofstream out(file, std::ios::app);
  if (!(out << settings << ',' << ranks << ',' << seconds << std::endl)) throw skein::FileError(file, -1, "cannot be written");
  const double one = seconds_of_one(file, settings);
  if (!(one > 0)) return "no run of one rank with these settings in " + file + ": no speed-up";
  char text[80];
  std::snprintf(text, sizeof text, "speed-up %.2f, efficiency %.2f", one / seconds, one / seconds / ranks);
  return text;
}

}  // namespace experiments
