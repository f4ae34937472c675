// expect: spawn calls its function with the communicator of each rank: sk::spawn(2, [](sk::ThreadComm& world) { ... })
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/spawn.hpp>

namespace sk = skein;

int main() {
#ifdef SKEIN_TWIN
  sk::spawn(2, [](sk::ThreadComm&) {});
#else
  sk::spawn(2, [] {});
#endif
}
