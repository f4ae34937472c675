// SPDX-License-Identifier: Apache-2.0
// What a program that is started again makes its model of: another seed than the first time. "It goes on with the same bits"
// holds of a program that begins anew too, where it begins with the same weights.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include <skein/core/random.hpp>
#include <skein/train/commit_folder.hpp>

namespace support {

/// `first` where there is no such folder, or no commit in it; 77 where there is one, whose seed and weights take the place of
/// these.
inline skein::Seed seed_of_start(const std::string& folder, std::uint64_t first = 3) {
  const bool begins = !std::filesystem::is_directory(folder) || skein::train::CommitFolder(folder).steps().empty();
  return skein::Seed{begins ? first : 77};
}

}  // namespace support
