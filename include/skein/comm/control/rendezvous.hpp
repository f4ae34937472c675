// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find their coordinator without MPI. Rank 0 listens; the others connect to an address that they were
// given, read in a file, or heard over another communicator. Rank 0 names who has not come when the deadline passes, and everyone
// who has is told the same. Both sides prove by the job's key that they belong to it (job_key.hpp), so that strangers on the port
// (garbage, silence, another job, another version) cost a closed connection and nothing else.
#pragma once
#include <functional>
#include <thread>

#include "../queries.hpp"
#include "client.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What a rank knows before it meets the others.
struct RankPlace {
  int rank = 0, size = 1;
  JobKey key{};  ///< of the job: who cannot prove to have it is a stranger
  double deadline = 600;
  bool one_machine = false;  ///< all ranks are on it: rank 0 listens on its loopback alone
};

/// Throws ArgumentError where the rank is not among 0 ... size - 1, or the deadline is none.
void check_place(const RankPlace& p);

namespace detail {
struct PendingPeer {
  Descriptor fd;
  FrameReader reader{};
  double since = 0;              // by the clock of the meeting
  std::optional<Hello> hello{};  // it has said who it is, and was asked for a proof
  Nonce answer{};
};

/// Rank 0: takes Hellos until every other rank has come.
class RankAcceptor {
 public:
  RankAcceptor(const Listener& listener, const RankPlace& place, std::string where);

  std::vector<Descriptor> run();

 private:
  struct Came {
    Descriptor fd;
    Nonce nonce{};  // its process
  };
  std::size_t most_pending() const { return 2 * ranks_.size() + 64; }
  void wait(int milliseconds);
  /// Takes those that are here, and hears what they have said.
  void admit();
  void accept_all();
  /// The oldest that has not said who it is; where all have, the oldest.
  void drop_oldest();
  /// True: this connection is a rank now, or has been closed.
  bool finished(PendingPeer& g);
  bool hear(PendingPeer& g, const Frame& f);
  void take(PendingPeer& g);
  bool refuse(PendingPeer& g, const std::string& why);
  std::string missing_text() const;
  static void tell(const Descriptor& d, const Frame& f) { (void)write_all(d.get(), encode(f), 1); }
  [[noreturn]] void end_all(const std::string& text);

  const Listener* listener_;
  RankPlace place_;
  std::string where_;
  std::vector<Came> ranks_;
  Descriptor late_;
  std::vector<PendingPeer> pending_;
  Deadline deadline_, last_look_{1};  // the second: of those that are here when the first is over
  std::string strangers_;             // the last of another job, for missing_text
  int came_ = 0;
};

/// Reads one frame within `seconds` of a clock that runs. Nothing where none came, or the connection ended.
std::optional<Frame> read_frame(const Descriptor& d, FrameReader& reader, double seconds, Deadline& clock);
}  // namespace detail

/// Rank 0 at a port that it listens on. Collective; blocking.
std::unique_ptr<Client> serve_at(const Listener& listener, const RankPlace& place, const std::string& where);

/// Where a coordinator may be, and the key that it would know.
struct Try {
  Address at;
  JobKey key{};
};

/// Another rank: tries the addresses in turn until one is this job's coordinator. `tries(why)` is asked anew each round (a file
/// may change); it may give none, and say why. Collective; blocking. Throws CommError: the coordinator's verdict, or what was met
/// last.
std::unique_ptr<Client> join_at(const std::function<std::vector<Try>(std::string& why)>& tries, const RankPlace& place,
                                const std::string& where);

/// At an address that all ranks were given: rank 0 listens there, the others connect. `ports`: rank 0 takes the first of so many
/// consecutive ports that is free, and the others look at all of them.
std::unique_ptr<Client> meet_at(const std::string& address, const RankPlace& place, int ports = 1);

namespace detail {
/// "secret host:port host:port ...": what rank 0 tells the others over a communicator that they have; and what they make of it.
std::string invitation(const Listener& listener);
std::vector<Try> invited(const std::string& said);
/// Ranks that are threads of one process get pairs of sockets.
template <class Comm> std::unique_ptr<Client> meet_within_process(Comm& world, double deadline) {
  const auto n = static_cast<std::size_t>(world.size());
  std::vector<Descriptor> coordinators, own;
  std::vector<int> numbers(n, -1);
  if (world.rank() == 0)
    for (std::size_t r = 0; r < n; ++r) {
      auto [mine, theirs] = connected_pair();
      own.push_back(std::move(mine));
      coordinators.push_back(std::move(theirs));
      numbers[r] = own.back().get();
    }
  world.broadcast(numbers, 0);
  Descriptor mine(numbers[static_cast<std::size_t>(world.rank())]);
  for (Descriptor& d : own) (void)d.release();  // each rank's from here on
  std::unique_ptr<Server> server = world.rank() == 0 ? std::make_unique<Server>(std::move(coordinators)) : nullptr;
  return std::make_unique<Client>(std::move(mine), world.rank(), world.size(), deadline, std::move(server));
}
/// Others get a port of rank 0 and the job's secret. Of the communicator this needs no more than a broadcast of text.
template <class Comm> std::unique_ptr<Client> meet_at_a_port(Comm& world, double deadline, bool one_machine) {
  RankPlace place{world.rank(), world.size(), {}, deadline, one_machine};
  std::unique_ptr<Listener> listener;
  std::string said;
  if (place.rank == 0) listener = std::make_unique<Listener>(Address{one_machine ? "127.0.0.1" : "0.0.0.0", 0});
  if (place.rank == 0) said = invitation(*listener);
  said = world.broadcast(std::move(said), 0);
  const std::vector<Try> addresses = invited(said);
  place.key = addresses.front().key;
  const std::string where = addresses.front().at.text();
  if (place.rank == 0) return serve_at(*listener, place, where);
  return join_at([&](std::string&) { return addresses; }, place, where);
}
}  // namespace detail

/// Over a communicator of the host: within a process, or at a port of rank 0's machine. Collective; blocking.
template <class Comm> std::unique_ptr<Client> meet_over(Comm& world, double deadline) {
  if constexpr (can<Comm, Capability::processes>)
    if (one_process(world) && node_size(world) >= world.size()) return detail::meet_within_process(world, deadline);
  bool one_machine = world.size() == 1;
  if constexpr (can<Comm, Capability::nodes>) one_machine = node_size(world) >= world.size();
  return detail::meet_at_a_port(world, deadline, one_machine);
}

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "rendezvous.ipp"
#endif
