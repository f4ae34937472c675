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
#include <vector>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What MPI says is wrong, in its own words.
class MpiError : public CommError {
 public:
  explicit MpiError(const std::string& what, SourceLocation where = SourceLocation::current()) : CommError(what, where) {}
};

/// Throws MpiError where a call failed.
inline void check_mpi(int status, const char* call, SourceLocation where = SourceLocation::current()) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw MpiError(std::string(call) + " failed: " + text, where);
}

/// While it lives, errors on MPI_COMM_WORLD are returned: Open MPI hands it those of started collectives, whatever communicator
/// they are on, and its handler ends the job without a name.
class WorldReturnsErrors {
 public:
  WorldReturnsErrors() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  WorldReturnsErrors(const WorldReturnsErrors&) = delete;
  WorldReturnsErrors& operator=(const WorldReturnsErrors&) = delete;
  ~WorldReturnsErrors() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    MPI_Errhandler_free(&before_);
  }

 private:
  MPI_Errhandler before_ = MPI_ERRORS_ARE_FATAL;
};

/// True, and no requests are left, once all are complete. Throws MpiError, and leaves them, where one has failed. `collectives`:
/// some of them may be started collectives, whose errors need care; messages are tested faster.
inline bool test_all(std::vector<MPI_Request>& requests, bool collectives, const char* call,
                     SourceLocation where = SourceLocation::current()) {
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

/// MPI is running: initialised, and not yet finalised.
inline bool mpi_runs() {
  int initialized = 0, finalised = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalised);
  return initialized && !finalised;
}

}  // namespace skein::inline SKEIN_ABI::comm
