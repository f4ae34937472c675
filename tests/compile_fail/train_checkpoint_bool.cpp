// expect: a tensor section holds float, double or integers
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/checkpoint.hpp>

#ifdef SKEIN_TWIN
using Value = unsigned char;
#else
using Value = bool;
#endif

int main() {
  const Value mask[3] = {1, 0, 1};
  skein::train::CheckpointWriter writer;
  writer.add("mask", std::span<const Value>(mask));
}
