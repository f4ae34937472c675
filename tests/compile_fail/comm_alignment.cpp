// expect: communicators reduce values that are aligned to 16 bytes at most: leave alignas out of the type
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "skein/comm/self/self_comm.hpp"

#ifdef SKEIN_TWIN
struct Lanes {
#else
struct alignas(32) Lanes {
#endif
  float values[8];
};
struct AddLanes {
  Lanes operator()(Lanes a, const Lanes& b) const {
    for (int i = 0; i < 8; ++i) a.values[i] += b.values[i];
    return a;
  }
};

int main() {
  skein::SelfComm world;
  std::vector<Lanes> lanes(3);
  world.all_reduce(lanes, AddLanes{});
}
