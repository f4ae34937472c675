// SPDX-License-Identifier: Apache-2.0
// The MPI C interface, every status checked. (Not its C++ bindings, which are gone from the standard and cost compile time.)
#pragma once
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <string>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Throws CommError with MPI's own text where a call failed.
inline void check_mpi(int status, const char* call, SourceLocation where = SourceLocation::current()) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw CommError(std::string(call) + " failed: " + text, where);
}

/// MPI is running: initialised, and not yet finalised.
inline bool mpi_runs() {
  int initialized = 0, finalised = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalised);
  return initialized && !finalised;
}

}  // namespace skein::inline SKEIN_ABI::comm
