// SPDX-License-Identifier: Apache-2.0
// How the commits of a training are made.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// How commits are made.
struct CommitOptions {
  int keep = 3;        ///< that stay
  bool async = false;  ///< a thread writes them while steps go on
};

}  // namespace skein::inline SKEIN_ABI::train
