// SPDX-License-Identifier: Apache-2.0
// The bodies of process_numbers.hpp.
#pragma once
#include "process_numbers.hpp"

#include <sys/stat.h>

#include <cstdio>

#include "../../core/hash.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::uint64_t process_numbers() {
  char boot[64] = "";
  if (std::FILE* const f = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(boot, sizeof boot, f)) boot[0] = 0;
    std::fclose(f);
  }
  struct stat space {};
  if (!boot[0] || ::stat("/proc/self/ns/pid", &space) != 0) return 0;
  const std::uint64_t both[2] = {hash_bytes(boot, sizeof boot), static_cast<std::uint64_t>(space.st_ino)};
  return hash_bytes(both, sizeof both) | 1;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
