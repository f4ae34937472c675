// SPDX-License-Identifier: Apache-2.0
// The engine of one ThreadComm rank. A collective is: post the call, wait for all posts, do one's share directly in the buffers
// of all ranks, wait until all have done theirs. Nothing is copied and nothing allocated.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "../../core/error.hpp"
#include "../progress.hpp"
#include "../request.hpp"
#include "../work.hpp"
#include "team.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The engine of one rank of ThreadComm: post a call, do one's share in the buffers of all ranks, wait for the others.
class ThreadEngine final : Progress {
 public:
  ThreadEngine(std::shared_ptr<Team> team, int rank) : team_(std::move(team)), rank_(rank), pointers_(team_->size) {}
  ~ThreadEngine() { leave_thread(); }

  Team& team() { return *team_; }
  int rank() const { return rank_; }
  const RankNames& rank_names() const { return team_->names; }

  void run(const CollectiveCall& o);
  Ticket start(const CollectiveCall& o);
  void progress();
  bool test(Ticket& t) {
    progress();
    if (t.message < 0 ? head_ >= t.number : message_done(t)) return true;
    move_others(this);
    if (++tests_ % 32 == 0) look_for_who_left(message_of(t));  // who polls never comes to check()
    return false;
  }
  void wait(Ticket& t);

  /// Waits for a message or a collective, at most so long; true once it is complete. No deadline: whoever calls this knows better
  /// whom it misses.
  bool wait_some(Ticket& t, std::chrono::nanoseconds limit);

  Ticket start_send(const void* data, std::size_t bytes, int to, int tag);
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) { return put(false, data, bytes, from, rank_, tag); }

  /// An exception passes through while a call is in flight: nobody may touch this rank's buffers once this returns.
  void abandon();
  /// This rank makes no further call: whoever waits for it, or will, is told at once.
  void leave();
  /// Ends all ranks with a message.
  [[noreturn]] void fail(const std::string& message);

 private:
  // Messages are copied by whoever comes second.
  bool under_way() const override { return head_ < tail_ && !team_->failure->happened(); }
  bool move_on() override { return step(); }

  Line& own() { return team_->line(rank_); }

  // The next piece of work that can be done without waiting; need_ is what is lacking otherwise.
  bool step();
  // `scan`: the ranks below it are known to have come so far.
  bool all(int which, std::uint64_t value, int& scan);

  void work(std::uint64_t call);

  void wait_until(std::uint64_t number);

  // The message that a ticket names; null where that is a collective.
  Message* message_of(const Ticket& t) {
    return t.message < 0 ? nullptr : &team_->pools[static_cast<std::size_t>(rank_)][t.message];
  }
  // What is waited for: a message, or (null) the need of the current call.
  bool has_come(const Message* message) const;
  // After a nap that did not help: has someone failed, gone, or been too long?
  void check(Deadline& timer, const Message* message);
  // Fails where those that could still bring it have returned.
  void look_for_who_left(const Message* message);
  // The current call lacks rank r.
  bool lacks(int r) const { return !Need{&team_->line(r), need_.which, need_.value}.met(); }
  // "recv from rank 1 (tag 4) on rank 0: "; "barrier (call 3): rank 1", and before it the public call that those have not made.
  std::string message_text(const Message& m) const;
  std::string call_text(const std::string& who, bool absent) const;

  // Waits until no rank is inside a buffer of this one, and takes unmatched messages back.
  void quiesce();
  // Throws what has ended the team, once it has.
  [[noreturn]] void throw_failure();

  Ticket put(bool sends, void* data, std::size_t bytes, int peer, int box, int tag);
  bool message_done(Ticket& t);
  Message& spin_for_message(const Ticket& t);
  void wait_for_message(Ticket& t);

  std::shared_ptr<Team> team_;
  int rank_;
  Pointers pointers_;
  std::uint64_t tail_ = 0, worked_ = 0, head_ = 0;  // calls posted, worked on, complete
  std::uint64_t m_number_ = 0;
  int posted_scan_ = 0, done_scan_ = 0;
  unsigned tests_ = 0;
  Need need_;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "engine.ipp"
#endif
