// SPDX-License-Identifier: Apache-2.0
// A case of a policy on teams of 1, 2, 3, 4 and 7 threads; tests/distributed runs the same cases over as many processes.
#pragma once
#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>

namespace support {

template <class Function> void at_every_size(Function function) {
  for (int n : {1, 2, 3, 4, 7}) {
    INFO(n << " ranks");
    CHECK_NOTHROW(skein::spawn(n, function, {.deadline = 120}));
  }
}

}  // namespace support
