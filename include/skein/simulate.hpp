// SPDX-License-Identifier: Apache-2.0
// Trying a policy without the machines: ranks over a network that is a clock (SimComm, simulated), over one that is slow
// (Delayed), and a rank that computes slower than the others (Slowed). Beside parallel.hpp, since no training needs them.
#pragma once
#pragma push_macro("I")  // as in skein.hpp
#undef I
#include "comm/sim/delayed.hpp"
#include "comm/sim/sim_comm.hpp"
#include "parallel/simulate/simulated.hpp"
#include "parallel/simulate/slowed.hpp"
#pragma pop_macro("I")
