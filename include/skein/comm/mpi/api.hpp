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
void check_mpi(int status, const char* call, SourceLocation where = SourceLocation::current());

/// While it lives, errors on MPI_COMM_WORLD are returned: Open MPI hands it those of started collectives, whatever communicator
/// they are on, and its handler ends the job without a name.
class WorldReturnsErrors {
 public:
  WorldReturnsErrors();
  WorldReturnsErrors(const WorldReturnsErrors&) = delete;
  WorldReturnsErrors& operator=(const WorldReturnsErrors&) = delete;
  ~WorldReturnsErrors();

 private:
  MPI_Errhandler before_ = MPI_ERRORS_ARE_FATAL;
};

/// True, and no requests are left, once all are complete. Throws MpiError, and leaves them, where one has failed. `collectives`:
/// some of them may be started collectives, whose errors need care; messages are tested faster.
bool test_all(std::vector<MPI_Request>& requests, bool collectives, const char* call,
              SourceLocation where = SourceLocation::current());

/// Ends receives of a communicator that has failed, so that nothing more is written where they point. False where a message that
/// has begun to arrive does not end within a tenth of a second: MPI cannot cancel it.
bool cancel_receives(MPI_Request* receives, std::size_t count);

/// MPI is running: initialised, and not yet finalised.
bool mpi_runs();

/// Frees a communicator where all of its ranks come to this within a quarter of a second. Else it stays until MPI ends: where a
/// call failed on another rank alone, messages are still under way, and Open MPI 4.1 gives them to the next communicator of the
/// same context id, or ends with a fault.
void free_together(MPI_Comm& comm);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED_MPI
#include "api.ipp"
#endif
