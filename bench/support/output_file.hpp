// SPDX-License-Identifier: Apache-2.0
// Files to which a program adds what it measured: tried before the work is done, which would be lost, and refused in a sentence
// that says what cannot be written, where, and how to mend it.
#pragma once
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <skein/core/error.hpp>

namespace bench {

/// What is said of a file that --FLAG names.
inline std::string not_written(const std::string& flag, const std::string& why) {
  return "--" + flag + " cannot be written there: " + why;
}
/// Throws FileError: the file that --FLAG names cannot be written, and why.
[[noreturn]] inline void refuse_output(const std::string& flag, const std::string& file, const std::string& why) {
  throw skein::FileError(file, -1, not_written(flag, why) + ". Name a file in a folder that exists and that you may write to");
}

/// Throws FileError where nothing can be added to the file that --FLAG names. A file that is not there is made, empty; an empty
/// name is none.
inline void check_can_add(const std::string& flag, const std::string& file) {
  errno = 0;
  if (!file.empty() && !std::ofstream(file, std::ios::app)) refuse_output(flag, file, std::strerror(errno));
}

}  // namespace bench
