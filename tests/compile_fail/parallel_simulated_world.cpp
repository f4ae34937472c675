// expect: the world has no compute(seconds): take a SimComm, or a Delayed around the communicator
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/simulate/simulated.hpp>

namespace sk = skein;

struct World {
#ifdef SKEIN_TWIN
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::computes};
  void compute(double) {}
#endif
};

using Policy = sk::parallel::Simulated<World, sk::parallel::SingleProcess>;

Policy f(World& world) { return {sk::parallel::SingleProcess{}, world, {}}; }
