// SPDX-License-Identifier: Apache-2.0
// The files that an experiment's flags name, tried before the first training: one that cannot be written at the end would lose
// what minutes of training gave. One rank calls it, the one that writes.
#pragma once
#include <cstring>
#include <string>

#include <skein/core/atomic_file.hpp>

#include "../../../bench/support/output_file.hpp"

namespace experiments {

/// What the flags of these names say; empty where the flag is not given.
struct OutputFiles {
  std::string json{}, record{}, out{};  // of files
  std::string svg{};                    // what the names of pictures begin with
};

/// Throws FileError where one of them cannot be written: what, where, and how to mend it.
inline void check_outputs(const OutputFiles& files) {
  bench::check_can_add("json", files.json);
  bench::check_can_add("record", files.record);
  bench::check_can_add("out", files.out);
  if (files.svg.empty()) return;
  const std::string picture = files.svg + ".svg";
  try {
    const skein::AtomicFile tried(picture);  // as pictures are written; it leaves nothing behind
  } catch (const skein::FileError& e) {
    bench::refuse_output("svg", picture, e.error() != 0 ? std::strerror(e.error()) : e.what());
  }
}

}  // namespace experiments
