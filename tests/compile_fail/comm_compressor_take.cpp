// expect: a compressor of several rounds hears what all ranks have made of each: it needs take(std::span<const Element>, int round)
// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include "skein/comm/compress/compressed_collectives.hpp"
#include "skein/comm/self/self_comm.hpp"

/// The first half of the values in one round, the second in the other.
struct Halves {
  static constexpr std::string_view name = "halves";
  static constexpr bool linear = true;
  static constexpr int rounds = 2;
  using Element = float;
  std::size_t elements(std::size_t n, int round) const { return round == 0 ? n / 2 : n - n / 2; }
  void encode(std::span<const float>, std::span<float>, int) {}
#ifdef SKEIN_TWIN
  void take(std::span<const float>, int) {}
#else
  void take(std::span<float>, int) {}
#endif
  void decode(std::span<const float>, std::span<float>) {}
};

int main() {
  skein::SelfComm world;
  std::vector<float> gradients(1000);
  Halves halves;
  skein::comm::compressed_all_reduce(world, halves, gradients);
}
