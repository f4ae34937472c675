// SPDX-License-Identifier: Apache-2.0
// The bodies of mpi_comm.hpp.
#pragma once
#include "../node/share_pages.hpp"
#include "mpi_comm.hpp"

#include "long_wait.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_MPI_INLINE MpiComm::MpiComm(int& argc, char**& argv, const CommOptions& options)
    : session_(std::make_unique<comm::MpiSession>()) {
  session_->start(argc, argv);
  engine_ = std::make_unique<engine_type>(MPI_COMM_WORLD, options);
}

SKEIN_MPI_INLINE MpiComm::MpiComm(MPI_Comm existing, const CommOptions& options) : MpiComm(existing, options, -1, {}) {}

SKEIN_MPI_INLINE MpiComm::MpiComm(MPI_Comm existing, const CommOptions& options, int node, comm::RankNames names)
    : engine_(std::make_unique<engine_type>(existing, options, node, std::move(names))) {}

SKEIN_MPI_INLINE MpiComm& MpiComm::operator=(MpiComm&& o) noexcept {
  std::swap(session_, o.session_);
  std::swap(engine_, o.engine_);
  std::swap(uncaught_, o.uncaught_);
  return *this;
}

SKEIN_MPI_INLINE MpiComm::~MpiComm() {
  if (!engine_) return;
  if (session_ && session_->owns() && comm::mpi_runs()) {
    // Others may wait for this rank for ever: MPI_Finalize would too.
    if (detail::fault_leaves(uncaught_)) {
      if (skein::detail::leave_to_run(&comm::abort_all)) {
        [[maybe_unused]] auto* const until_the_end = engine_.release();
        return;
      }
      const std::string last = detail::last_error();
      comm::abort_all("an exception left the scope of the world's MpiComm" +
                      (last.empty() ? "" : "; the last error that skein raised: " + last) +
                      "; with main's body in sk::run the exception itself is printed");
    }
    if (engine_->failed()) comm::abort_all("the world's MpiComm had failed");
  } else if (detail::fault_leaves(uncaught_) && comm::mpi_runs()) {
    engine_->fail_without_throw(engine_->rank_names().name(rank()) + " failed: an exception left the scope of its communicator");
  }
  if (session_ && session_->owns()) skein::detail::say_interrupt();
  engine_.reset();
  if (session_) session_->finish();
}

SKEIN_MPI_INLINE MpiComm MpiComm::split(int color, int key) {
  comm::check_color(color);
  barrier();  // a rank that is missing is named here, not waited for inside MPI
  MPI_Comm part = MPI_COMM_NULL;
  const comm::LongWait wait("MPI_Comm_split", engine_->rank_names().number(rank()), comm::LongWait::long_of(deadline()));
  comm::check_mpi(MPI_Comm_split(engine_->comm(), color, key, &part), "MPI_Comm_split");
  int count = 1, own = engine_->rank_names().number(rank());
  comm::check_mpi(MPI_Comm_size(part, &count), "MPI_Comm_size");
  std::vector<int> numbers(static_cast<std::size_t>(count));
  comm::check_mpi(MPI_Allgather(&own, 1, MPI_INT, numbers.data(), 1, MPI_INT, part), "MPI_Allgather");
  MpiComm made(part, engine_->options(), engine_->node(), comm::RankNames(std::move(numbers)));
  MPI_Comm_free(&part);
  return made;
}

SKEIN_MPI_INLINE comm::SharedPages MpiComm::share(std::size_t bytes) { return comm::share_pages(*this, *engine_, bytes); }

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
