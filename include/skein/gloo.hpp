// SPDX-License-Identifier: Apache-2.0
// Ranks as processes without MPI: GlooComm (link gloo: the target skein::gloo), and the communicators that need no third party.
#pragma once
#include "comm/gloo/gloo_comm.hpp"
#include "comm/self/self_comm.hpp"
#include "comm/thread/spawn.hpp"
