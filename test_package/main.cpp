// SPDX-License-Identifier: Apache-2.0
// A user's own program, built by every consumer in the tests.
#include <skein/core/shape.hpp>

#include <cstdio>

int main() {
  std::printf("a row of 512 is stored as %ld\n", skein::row_pitch(512));
  return skein::row_pitch(512) == 528 ? 0 : 1;
}
