// SPDX-License-Identifier: Apache-2.0
// The bodies of api.hpp.
#pragma once
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE void check_mpi(int status, const char* call, SourceLocation where) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw MpiError(std::string(call) + " failed: " + text, where);
}

SKEIN_MPI_INLINE WorldReturnsErrors::WorldReturnsErrors() {
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

SKEIN_MPI_INLINE WorldReturnsErrors::~WorldReturnsErrors() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
  MPI_Errhandler_free(&before_);
}

SKEIN_MPI_INLINE bool test_all(std::vector<MPI_Request>& requests, bool collectives, const char* call, SourceLocation where) {
  int done = 0;
  if (!collectives) {
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), call, where);
    if (done) requests.clear();
    return done != 0;
  }
  for (const MPI_Request& r : requests) {
    check_mpi(MPI_Request_get_status(r, &done, MPI_STATUS_IGNORE), call, where);
    if (!done) return false;
  }
  const WorldReturnsErrors guard;
  for (MPI_Request& r : requests) check_mpi(MPI_Wait(&r, MPI_STATUS_IGNORE), call, where);
  requests.clear();
  return true;
}

SKEIN_MPI_INLINE bool mpi_runs() {
  int initialized = 0, finalised = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalised);
  return initialized && !finalised;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
