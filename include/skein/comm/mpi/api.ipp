// SPDX-License-Identifier: Apache-2.0
// The bodies of api.hpp.
#pragma once
#include <sched.h>

#include "../tags.hpp"
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

SKEIN_MPI_INLINE bool cancel_receives(MPI_Request* receives, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (receives[i] != MPI_REQUEST_NULL) MPI_Cancel(&receives[i]);
  const double end = MPI_Wtime() + 0.1;
  const int n = static_cast<int>(count);
  int done = 0;
  while (MPI_Testall(n, receives, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !done && MPI_Wtime() < end) sched_yield();
  return done != 0;
}

SKEIN_MPI_INLINE bool mpi_runs() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

/// Notes of the failure detector that nobody has read: MPI would keep them after the communicator.
SKEIN_MPI_INLINE void drop_notes(MPI_Comm comm) {
  std::vector<char> note;
  for (int there = 1, bytes = 0; there;) {
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tags::failures, comm, &there, &status) != MPI_SUCCESS || !there) return;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    note.resize(static_cast<std::size_t>(bytes));
    if (MPI_Recv(note.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tags::failures, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
  }
}

SKEIN_MPI_INLINE void free_together(MPI_Comm& comm) {
  constexpr int tag = tags::free_together;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const double end = MPI_Wtime() + 0.25;
  for (int away = 1; away < ranks; away *= 2) {  // a barrier that ends with the time
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Irecv(nullptr, 0, MPI_BYTE, (rank + ranks - away) % ranks, tag, comm, &both[0]);
    MPI_Isend(nullptr, 0, MPI_BYTE, (rank + away) % ranks, tag, comm, &both[1]);
    int done = 0;
    while (MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !done && MPI_Wtime() < end) sched_yield();
    if (done) continue;
    if (both[0] != MPI_REQUEST_NULL) MPI_Cancel(&both[0]);
    for (MPI_Request& r : both)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    return;
  }
  drop_notes(comm);
  MPI_Comm_free(&comm);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
