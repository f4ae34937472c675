// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of an MPI job. Start-up, splitting and messages between nodes are MPI's; collectives and messages of
// ranks that are all on one node go through shared memory. boost.hpp beside this adds Boost.MPI's communicators and serialised
// objects.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "engine.hpp"
#include "session.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace comm {
/// How another library's communicator is made of an MPI_Comm (specialised in boost.hpp).
template <class C> struct Bridge {};
}  // namespace comm

/// A rank among processes. Move-only. Use it from one thread, the one that initialised MPI (MPI_THREAD_FUNNELED).
class MpiComm : public comm::Messages<MpiComm, Cpu> {
 public:
  static constexpr std::string_view name = "MpiComm";
  static constexpr comm::Capabilities capabilities{
      comm::Capability::nodes,  comm::Capability::node_places, comm::Capability::deadlines, comm::Capability::failures,
      comm::Capability::orders, comm::Capability::splits,      comm::Capability::shares};
  using engine_type = comm::MpiEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  /// The world. Initialises MPI where nobody has, and finalises what it initialised; without mpirun it is a world of one. From
  /// here on an exception that nobody catches ends all ranks with "rank r: message". Collective.
  MpiComm(int& argc, char**& argv, const CommOptions& options = {});
  /// The ranks of an existing communicator (a boost::mpi::communicator converts to it). Makes a communicator of its own, never
  /// finalises. Collective over `existing`.
  explicit MpiComm(MPI_Comm existing, const CommOptions& options = {});

  MpiComm(MpiComm&& o) noexcept : session_(std::move(o.session_)), engine_(std::move(o.engine_)), uncaught_(o.uncaught_) {}
  MpiComm& operator=(MpiComm&& o) noexcept;
  ~MpiComm();

  int rank() const { return engine_->rank(); }
  int size() const { return engine_->size(); }
  /// Ranks on this rank's node, and this rank's place among them (which GPU, whose cores).
  int node_size() const { return engine_->node_size(); }
  int node_rank() const { return engine_->node_rank(); }
  /// Collectives and messages go through shared memory: all ranks are on one node.
  bool shares_memory() const { return engine_->shares_memory(); }

  /// How values are added: ranks, or native (CommOptions::order). ranks also where native was asked for and shared memory serves.
  ReductionOrder order() const { return engine_->order(); }

  /// Ends all ranks with a CommError.
  [[noreturn]] void fail(const std::string& message) { engine_->fail(message); }
  /// Seconds until a rank that does not arrive is named.
  double deadline() const { return engine_->options().deadline; }
  void set_deadline(double seconds) { engine_->options().deadline = comm::checked_deadline(seconds, "set_deadline"); }
  /// Compares kind, type and count of every collective also between nodes. On all ranks alike.
  void set_check(bool check) { engine_->set_check(check); }

  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  MpiComm split(int color, int key = 0);

  /// Memory of this rank, zeroed, that the other ranks read and write too: an all-reduce of a span of it, at the same place on
  /// every rank and of more than 16 KiB, copies nothing. None, on all ranks alike, where the collectives do not go through shared
  /// memory, /dev/shm has no room, or the ranks ask for different sizes or for nothing. Collective; blocking.
  comm::SharedPages share(std::size_t bytes);

  /// Calls function(*this); an exception ends all ranks with its message, even where the program would catch it further out.
  template <class Function> void run(Function&& function) {
    try {
      function(*this);
    } catch (const std::exception& e) { comm::abort_all(e.what()); }
  }

  /// The MPI communicator, for other libraries' calls. Not for messages with tags above 32000.
  MPI_Comm native() const { return engine_->comm(); }
  /// Another library's communicator over the same ranks: `boost::mpi::communicator c = world;` with comm/mpi/boost.hpp.
  template <class C>
  requires requires(MPI_Comm c) {
    { comm::Bridge<C>::make(c) } -> std::same_as<C>;
  }
  operator C() const { return comm::Bridge<C>::make(engine_->comm()); }

  engine_type& engine() { return *engine_; }

 private:
  /// A part of a communicator: `node` is this rank's there, where CommOptions::node_size says them.
  MpiComm(MPI_Comm existing, const CommOptions& options, int node, comm::RankNames names);

  std::unique_ptr<comm::MpiSession> session_;
  std::unique_ptr<engine_type> engine_;
  int uncaught_ = std::uncaught_exceptions();
};

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "mpi_comm.ipp"
#endif
