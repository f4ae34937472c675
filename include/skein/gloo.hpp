// SPDX-License-Identifier: Apache-2.0
// Ranks as processes without MPI: GlooComm (link gloo: the target skein::gloo), and the communicators that need no third party.
#pragma once
#pragma push_macro("I")  // as in skein.hpp
#undef I
#include "comm/gloo/gloo_comm.hpp"
#include "comm/self/self_comm.hpp"
#include "comm/thread/spawn.hpp"
#pragma pop_macro("I")
