// SPDX-License-Identifier: Apache-2.0
// What the ranks of a simulation share: clocks, mailboxes, collectives, and the turn. Ranks are threads of which one runs at a
// time: where what a rank sees depends on what others do, the one whose clock is behind goes first. So a simulation is a
// discrete-event one, gives the same times and the same bits in every run, and whoever comes first in a recv from any rank comes
// first by the clock.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include <time.h>

#include "../../core/error.hpp"
#include "../../plan/collective_check.hpp"
#include "../request.hpp"
#include "group.hpp"
#include "mailbox.hpp"
#include "options.hpp"
#include "tables.hpp"
#include "turn.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The ranks of a simulated machine: who waits for what, their clocks and their messages. One for all ranks; guarded by the turn.
class SimWorld {
 public:
  SimWorld(int n, SimOptions options, std::shared_ptr<Failure> failure);

  const SimOptions& options() const { return options_; }
  Failure& failure() { return turn_.failure(); }
  std::shared_ptr<SimGroup> whole() { return groups_[{0, 0, 0}]; }
  /// The group of a split: the first to ask makes it.
  std::shared_ptr<SimGroup> group(std::uint64_t parent, std::uint64_t split, int color, const std::vector<int>& members);

  // ---- the turn
  /// A rank's thread begins: returns when it is its turn.
  void begin(int rank);
  /// It has returned, or failed.
  void end(int rank);
  void wake() { turn_.wake(); }
  /// Throws where the simulation has failed.
  void check() const { turn_.check(); }

  // ---- clocks
  double now(int rank);
  /// The rank computes so long.
  void compute(int rank, double seconds);
  SimReport report() const;
  const SimRank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)].at; }

  // ---- messages
  Ticket send(int rank, const SimGroup& group, const void* data, std::size_t bytes, int to, int tag);
  Ticket receive(int rank, const SimGroup& group, void* data, std::size_t bytes, int from, int tag);

  // ---- collectives
  Ticket start(int rank, SimGroup& group, int place, std::uint64_t number, const CollectiveCall& o);

  // ---- completion
  bool test(int rank, SimGroup& group, int place, Ticket& t);
  void wait(int rank, SimGroup& group, int place, Ticket& t);
  /// Others whose clocks are behind go first.
  void progress(int rank);

  int size() const { return static_cast<int>(ranks_.size()); }

 private:
  struct Rank {
    SimRank at{};
    double send_free = 0, collective_free = 0, processor = 0;
    bool granted = false;
    unsigned polls = 0;  // without success, one after the other
    std::uint64_t draws = 0;
    SimMailbox mail{};
    Ticket* waits = nullptr;
    SimGroup* waits_in = nullptr;
    int waits_at = 0;
  };

  Rank& of(int r) { return ranks_[static_cast<std::size_t>(r)]; }

  static double processor_seconds();
  void charge(Rank& me, int rank);
  void enter(int rank);
  void leave(int rank);
  void spend(Rank& me, double seconds);
  static void advance(Rank& me, double to);
  double slowness(int rank) const;
  double jitter(std::uint64_t stream, std::uint64_t i) const;
  double takes(int from, int to, double bytes) const;

  /// Until this rank's time is the earliest. `time`: never, where it waits for others.
  void turn(int rank, double time);
  [[noreturn]] void fail(int rank, const std::string& message);
  /// Every rank waits for another.
  std::string standstill();
  const CollectiveCall& post_of(Rank& me);

  /// When what the ticket names is complete, never where that is not known; fixed: nothing that another rank does can change it.
  double completion(Rank& me, SimGroup& group, int place, const Ticket& t, bool& fixed);
  /// Letters or receives have come to a rank: what it waits for may come earlier now.
  void match(int rank);
  double waits_until(Rank& me);
  void renew_time(int rank);
  /// The clock has come to it: results are handed over.
  void finish(int rank, SimGroup& group, Ticket& t);

  // ---- a collective, once all have come
  void perform(SimGroup& group, SimCall& call, std::uint64_t number);
  Rank& member(const SimGroup& group, int place) { return of(group.members[static_cast<std::size_t>(place)]); }

  void play(SimGroup& group, SimCall& call);
  template <class Table> void play(SimGroup& group, SimCall& call, const Table& table) {
    const double element = static_cast<double>(call.posts[0].signature.element);
    const std::uint64_t stream = 2 * ranks_.size() + plays_++;
    const auto world_rank = [&](int place) { return group.members[static_cast<std::size_t>(place)]; };
    plan::play_from(
        table, call.left,
        [&](int from, int to, long values, int step) {
          return takes(world_rank(from), world_rank(to), element * static_cast<double>(values)) *
                 jitter(stream, static_cast<std::uint64_t>(step) * group.members.size() + static_cast<std::uint64_t>(from));
        },
        [&](long values) { return options_.network.gamma * element * static_cast<double>(values); });
    for (int r = 0; r < table.ranks; ++r) {
      const plan::SentByRank sent = plan::sent_by(table, r);
      member(group, r).at.messages += sent.messages;
      member(group, r).at.bytes += sent.values * static_cast<long>(call.posts[0].signature.element);
    }
  }

  SimOptions options_;
  SimTurn turn_;
  std::deque<Rank> ranks_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, int>, std::shared_ptr<SimGroup>> groups_;
  std::uint64_t key_, plays_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "world.ipp"
#endif
