// SPDX-License-Identifier: Apache-2.0
// The processor time that a container leaves to a process: a quota of the control group, of which the affinity mask knows
// nothing.
#pragma once
#include <string>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// How many cores this process may keep busy, by the quota of its control group and of those above it (`docker run --cpus 2`, the
/// limit of a pod): rounded down, and at least 1; 0 where there is none. Read once. Threads beyond that stand still together.
int cpu_quota();

namespace detail {
/// The same from files, of which `read` gives the text ("" of one that is not there): /proc/self/cgroup, and the cpu.max (version
/// 2) or cpu.cfs_quota_us (version 1) of the groups that it names.
int cpu_quota(std::string (*read)(const std::string& path));
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "cpu_quota.ipp"
#endif
