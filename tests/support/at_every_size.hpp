// SPDX-License-Identifier: Apache-2.0
// A case of a policy on a team of threads, or on teams of 1, 2, 3, 4 and 7; tests/distributed runs the same cases over as many
// processes.
#pragma once
#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>

namespace support {

template <class Function> void on_threads(int ranks, Function function) {
  INFO(ranks << " ranks");
  CHECK_NOTHROW(skein::spawn(ranks, function, {.deadline = 120}));
}
template <class Function> void at_every_size(Function function) {
  for (int ranks : {1, 2, 3, 4, 7}) on_threads(ranks, function);
}

}  // namespace support
