// SPDX-License-Identifier: Apache-2.0
// Quotas of control groups, from files as Linux has them.
#include <skein/core/cpu_quota.hpp>

#include <catch2/catch.hpp>

#include <map>
#include <string>

namespace {
std::map<std::string, std::string>& files() {
  static std::map<std::string, std::string> all;
  return all;
}
int quota_of(std::map<std::string, std::string> all) {
  files() = std::move(all);
  return skein::detail::cpu_quota([](const std::string& path) { return files().count(path) ? files()[path] : std::string(); });
}
const std::string own = "/proc/self/cgroup", root = "/sys/fs/cgroup";
}  // namespace

TEST_CASE("the quota of a control group is the least of it and those above it, in whole cores") {
  CHECK(quota_of({}) == 0);
  CHECK(quota_of({{own, "0::/\n"}}) == 0);
  CHECK(quota_of({{own, "0::/\n"}, {root + "/cpu.max", "max 100000\n"}}) == 0);
  CHECK(quota_of({{own, "0::/\n"}, {root + "/cpu.max", "200000 100000\n"}}) == 2);
  CHECK(quota_of({{own, "0::/\n"}, {root + "/cpu.max", "290000 100000\n"}}) == 2);
  CHECK(quota_of({{own, "0::/\n"}, {root + "/cpu.max", "20000 100000\n"}}) == 1);
  CHECK(quota_of({{own, "0::/a/b"}, {root + "/a/b/cpu.max", "400000 100000\n"}, {root + "/a/cpu.max", "150000 50000\n"}}) == 3);
  CHECK(quota_of({{own, "0::/a/b\n"}, {root + "/a/b/cpu.max", "400000 100000\n"}, {root + "/a/cpu.max", "max 100000\n"}}) == 4);
}

TEST_CASE("the quota of a container whose system has control groups of version 1") {
  const std::string groups = "5:memory:/docker/b5\n4:cpu,cpuacct:/docker/b5\n3:cpuset:/\n0::/\n", cpu = root + "/cpu,cpuacct";
  CHECK(quota_of({{own, groups}, {cpu + "/cpu.cfs_quota_us", "-1\n"}, {cpu + "/cpu.cfs_period_us", "100000\n"}}) == 0);
  CHECK(quota_of({{own, groups}, {cpu + "/cpu.cfs_quota_us", "600000\n"}, {cpu + "/cpu.cfs_period_us", "100000\n"}}) == 6);
  CHECK(quota_of({{own, "3:cpuacct,cpu:/docker/b5\n"},
                  {root + "/cpu/cpu.cfs_quota_us", "300000\n"},
                  {root + "/cpu/cpu.cfs_period_us", "100000\n"}}) == 3);
  CHECK(quota_of({{own, "2:cpuacct:/b\n1:cpu:/b\n"},
                  {root + "/cpu/b/cpu.cfs_quota_us", "50000\n"},
                  {root + "/cpu/b/cpu.cfs_period_us", "10000\n"},
                  {root + "/cpuacct/b/cpu.cfs_quota_us", "10000\n"},
                  {root + "/cpuacct/b/cpu.cfs_period_us", "10000\n"}}) == 5);
}

TEST_CASE("lines that are none of a control group, and numbers that are none, are no quota") {
  for (const char* groups : {"", "\n\n", "0", "0:", "0::", "::", "0::nowhere", "cpu", "1:cpu:relative\n", ":::::\n"})
    CHECK(quota_of({{own, groups}, {root + "/cpu.max", "100000 100000"}, {root + "/cpu/cpu.cfs_quota_us", "100000"}}) == 0);
  for (const char* quota : {"", " ", "200000", "x y", "200000 0", "0 100000", "-1 100000", "nan nan", "inf 1"})
    CHECK(quota_of({{own, "0::/"}, {root + "/cpu.max", quota}}) == 0);
  CHECK(skein::cpu_quota() >= 0);
}
