// SPDX-License-Identifier: Apache-2.0
// What a function writes to stderr.
#pragma once
#include <cstdio>
#include <functional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "temporary_folder.hpp"

namespace support {

/// What f writes to stderr.
inline std::string said(const TemporaryFolder& folder, const std::function<void()>& f) {
  std::fflush(stderr);
  const int kept = dup(2), file = open((folder / "said").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(file, 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(file), close(kept);
  return read_text(folder / "said");
}

}  // namespace support
