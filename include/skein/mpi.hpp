// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: MpiComm, and the communicators that need no third party. Boost.MPI's communicators and serialised objects
// are in skein/comm/mpi/boost.hpp, which costs what Boost.MPI costs.
#pragma once
#pragma push_macro("I")  // as in skein.hpp
#undef I
#include "comm/mpi/mpi_comm.hpp"
#include "comm/self/self_comm.hpp"
#include "comm/thread/spawn.hpp"
#pragma pop_macro("I")
