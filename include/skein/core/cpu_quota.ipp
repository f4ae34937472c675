// SPDX-License-Identifier: Apache-2.0
// The bodies of cpu_quota.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cpu_quota.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::detail {

/// The first 16 KiB.
SKEIN_INLINE std::string text_of_small_file(const std::string& path) {
  std::string text(16384, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "re");
  text.resize(file ? std::fread(text.data(), 1, text.size(), file) : 0);
  if (file) std::fclose(file);
  return text;
}

/// Microseconds of processor time in a period of so many; infinity where it is "max", "-1" or nothing.
inline double cores_of_quota(const std::string& quota, const std::string& period) {
  const double time = std::strtod(quota.c_str(), nullptr), of = std::strtod(period.c_str(), nullptr);
  return time > 0 && of > 0 ? time / of : HUGE_VAL;
}

/// The least quota of the group at `path` below a mounted hierarchy, and of the groups above it.
inline double least_quota(std::string (*read)(const std::string&), const std::string& mounted, std::string path, bool version_2) {
  double least = HUGE_VAL;
  while (true) {
    const std::string group = mounted + (path == "/" ? "" : path);
    if (version_2) {
      const std::string both = read(group + "/cpu.max");  // "200000 100000", "max 100000"
      const std::size_t space = both.find(' ');
      if (space != both.npos) least = std::min(least, cores_of_quota(both.substr(0, space), both.substr(space)));
    } else {
      least = std::min(least, cores_of_quota(read(group + "/cpu.cfs_quota_us"), read(group + "/cpu.cfs_period_us")));
    }
    if (path.size() < 2) return least;
    path.resize(path.rfind('/'));
  }
}

SKEIN_INLINE int cpu_quota(std::string (*read)(const std::string& path)) {
  const std::string groups = read("/proc/self/cgroup");
  double least = HUGE_VAL;
  for (std::string_view rest = groups; !rest.empty();) {  // "0::/user.slice", "4:cpu,cpuacct:/docker/b5a8"
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(':'), second = line.find(':', first == line.npos ? first : first + 1);
    if (second == line.npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string names(line.substr(first + 1, second - first - 1)), path(line.substr(second + 1));
    if (names.empty()) least = std::min(least, least_quota(read, "/sys/fs/cgroup", path, true));
    if (("," + names + ",").find(",cpu,") == std::string::npos) continue;
    for (const std::string& mounted :
         {std::string("cpu"), names})  // of "cpuacct,cpu" the folder is cpu,cpuacct, to which cpu leads
      least = std::min(least, least_quota(read, "/sys/fs/cgroup/" + mounted, path, false));
  }
  return least < 1e6 ? std::max(1, static_cast<int>(least)) : 0;
}

}  // namespace skein::inline SKEIN_ABI::detail

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE int cpu_quota() {
  static const int cores = detail::cpu_quota(detail::text_of_small_file);
  return cores;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
