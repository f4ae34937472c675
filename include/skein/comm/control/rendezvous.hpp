// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find their coordinator without MPI. Rank 0 listens; the others connect to an address that they were
// given, read in a file, or heard over another communicator. Rank 0 names who has not come when the deadline passes, and everyone
// who has is told the same. Strangers on the port (garbage, another job, another version) cost a closed connection and nothing
// else.
#pragma once
#include <thread>

#include "../queries.hpp"
#include "client.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What a rank knows before it meets the others.
struct RankPlace {
  int rank = 0, size = 1;
  std::uint64_t key = 0;  ///< of the job: who brings another is a stranger
  double deadline = 600;
};

/// Throws ArgumentError where the rank is not among 0 ... size - 1.
void check_place(const RankPlace& p);

/// The key of a job's name.
inline std::uint64_t key_of(const std::string& job) { return hash_bytes(job.data(), job.size()); }

namespace detail {
struct PendingPeer {
  Descriptor fd;
  FrameReader reader;
  double since = 0;
};

/// Rank 0: takes Hellos until every other rank has come.
class RankAcceptor {
 public:
  RankAcceptor(const Listener& listener, const RankPlace& place, std::string where);

  std::vector<Descriptor> run();

 private:
  void wait(double end);
  void admit();
  /// True: this connection is a rank now, or has been closed.
  bool finished(PendingPeer& g);
  std::string missing_text() const;
  static void tell(const Descriptor& d, const Frame& f) { (void)write_all(d.get(), encode(f), 1); }
  [[noreturn]] void end_all(const std::string& text);

  const Listener* listener_;
  RankPlace place_;
  std::string where_;
  std::vector<Descriptor> ranks_;
  Descriptor late_;
  std::vector<PendingPeer> pending_;
  int came_ = 0;
};

/// Reads one frame within `seconds`. Nothing where none came, or the connection ended.
std::optional<Frame> read_frame(const Descriptor& d, FrameReader& reader, double seconds);
}  // namespace detail

/// Rank 0 at a port that it listens on. Collective; blocking.
std::unique_ptr<Client> serve_at(const Listener& listener, const RankPlace& place, const std::string& where);

/// Where a coordinator may be, and the key that it would know.
struct Try {
  Address at;
  std::uint64_t key = 0;
};

/// Another rank: tries the addresses in turn until one is this job's coordinator. `tries(why)` is asked anew each round (a file
/// may change); it may give none, and say why. Collective; blocking. Throws CommError: the coordinator's verdict, or what was met
/// last.
template <class Tries> std::unique_ptr<Client> join_at(Tries&& tries, const RankPlace& place, const std::string& where) {
  check_place(place);
  const double end = now() + place.deadline;
  std::string why = "nothing is there";
  double interval = 0.01;
  while (true) {
    for (const Try& t : tries(why)) {
      Descriptor d = try_connect(t.at, std::min(3.0, std::max(0.05, end - now())), why);
      if (!d) continue;
      FrameReader reader;
      reader.trust();
      std::optional<Frame> f;
      try {
        (void)write_all(d.get(), encode({Kind::Hello, 0, 0, 0, pack(Hello{place.rank, place.size, t.key})}), 2);
        f = detail::read_frame(d, reader, std::min(5.0, std::max(0.5, end - now())));
        const bool heard = f && f->kind == Kind::Heard && f->number == t.key;
        if (heard) f = detail::read_frame(d, reader, place.deadline + 3);
        else if (f && f->kind == Kind::Fail) {
          why = f->payload;
          continue;
        } else f.reset();
        if (!f) {
          why = t.at.text() + (heard ? " went away before all ranks had come" : " answers, but not as this job's coordinator");
          continue;
        }
      } catch (const CommError& e) {
        why = t.at.text() + " answers, but " + e.what();
        continue;
      }
      if (f->kind == Kind::Welcome) return std::make_unique<Client>(std::move(d), place.rank, place.size, place.deadline);
      throw CommError(f->kind == Kind::Fail ? f->payload : t.at.text() + " is no coordinator of this job");
    }
    if (now() >= end)
      throw CommError("rank " + std::to_string(place.rank) + " did not find rank 0 at " + where + " within " +
                      seconds_text(place.deadline) + " (" + why + "): does rank 0 run, and may this machine reach it");
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(interval, std::max(0.001, end - now()))));
    interval = std::min(0.25, interval * 1.5);
  }
}

/// At an address that all ranks were given: rank 0 listens there, the others connect.
std::unique_ptr<Client> meet_at(const std::string& address, const RankPlace& place);

namespace detail {
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
/// Others get a port of rank 0. Of the communicator this needs no more than a broadcast of text.
template <class Comm> std::unique_ptr<Client> meet_at_a_port(Comm& world, double deadline) {
  RankPlace place{world.rank(), world.size(), 0, deadline};
  if (place.size == 1) return serve_at(Listener({"localhost", 0}), place, "localhost");
  std::unique_ptr<Listener> listener;
  std::string said;
  if (world.rank() == 0) {
    listener = std::make_unique<Listener>(Address{"0.0.0.0", 0});
    said = std::to_string(std::chrono::system_clock::now().time_since_epoch().count()) + "." + std::to_string(::getpid());
    for (const std::string& host : own_hosts()) said += " " + Address{host, listener->port()}.text();
  }
  said = world.broadcast(std::move(said), 0);
  place.key = key_of(said);
  std::vector<Try> addresses;
  for (std::size_t at = said.find(' '); at != std::string::npos; at = said.find(' ', at + 1))
    addresses.push_back({parse_address(said.substr(at + 1, said.find(' ', at + 1) - at - 1)), place.key});
  const std::string where = addresses.front().at.text();
  if (world.rank() == 0) return serve_at(*listener, place, where);
  return join_at([&](std::string&) { return addresses; }, place, where);
}
}  // namespace detail

/// Over a communicator of the host: within a process, or at a port of rank 0's machine. Collective; blocking.
template <class Comm> std::unique_ptr<Client> meet_over(Comm& world, double deadline) {
  if constexpr (can<Comm, Capability::processes>)
    if (one_process(world) && node_size(world) >= world.size()) return detail::meet_within_process(world, deadline);
  return detail::meet_at_a_port(world, deadline);
}

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "rendezvous.ipp"
#endif
