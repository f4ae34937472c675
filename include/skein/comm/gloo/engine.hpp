// SPDX-License-Identifier: Apache-2.0
// The engine of one GlooComm rank. Ranks of one machine use its shared memory, in which the calling thread works while it waits;
// those of several use gloo's connections, on which threads of their own work. The coordinator, over which the ranks met, tells
// them when one has died or failed.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "../call_ring.hpp"
#include "../node/shared_links.hpp"
#include "../node/shared_transport.hpp"
#include "../options.hpp"
#include "../progress.hpp"
#include "../self/self_comm.hpp"
#include "connections.hpp"
#include "node_meeting.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What GlooComm hands its calls to. Throws CommError where the communicator has failed, on every rank the same.
class GlooEngine final : Progress {
 public:
  using GlooDevice = GlooConnections::Device;

  /// Collective over the control's ranks. `device`: a split's, of its parent.
  GlooEngine(ControlComm& control, const CommOptions& options, NodeSharing sharing, GlooDevice device = {})
      : control_(control), options_(options), names_(control.engine().rank_names()), rank_(control.rank()),
        size_(control.size()) {
    ControlNodeMeeting meeting(control);
    if (size_ == 1) return;
    if (sharing.shares_memory && segment_.create(meeting, rank_, size_)) {
      memory_.emplace(segment_, rank_, names_);
      links_.emplace(segment_, rank_, names_);
      spins_ = spins_of(control.all_gather(own_cores()));
      return;
    }
    try {
      connections_.emplace(control, std::move(device), sharing.one_machine, options.message);
    } catch (const CommError&) { throw; } catch (const std::exception& e) {
      if (is_users(std::current_exception())) throw;  // by way of the control, which has failed
      const auto* const thread = dynamic_cast<const std::system_error*>(&e);
      const std::string own = names_.name(rank_);
      fail(thread ? threads_text(own, *thread) : own + ": gloo does not connect the ranks: " + e.what());
    }
  }
  ~GlooEngine() {
    leave_thread();
    leave();
    if (connections_) connections_->stop();
  }

  bool shares_memory() const { return memory_.has_value(); }
  bool failed() const { return failed_; }
  CommOptions& options() { return options_; }
  const RankNames& rank_names() const { return names_; }
  GlooDevice device() const { return connections_ ? connections_->device() : nullptr; }
  /// The rank has said that it makes no call any more.
  bool has_left(int rank) { return client().has_left(control_.engine().group(), rank); }
  /// All-reduces in these pages copy nothing from here on. Collective, where shares_memory().
  void add(const std::shared_ptr<NodePages>& pages) { memory_->add(pages); }

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    called();
    look_for_failure();
    if (size_ == 1) return self_.start(o);
    if (connections_) {
      GlooCollectives& calls = connections_->collectives();
      if (calls.full()) wait_until([&] { return !calls.full(); }, calls.complete() + 1, nullptr);
      return {calls.push(o), -1, -1};
    }
    if (calls_.full()) wait_until([&] { return !calls_.full(); }, 0, nullptr);
    CollectiveCall& call = calls_.next();
    call = o;
    call.signature.shared_at = memory_->shared_at(o);
    if (calls_.empty()) memory_->begin(call, calls_.complete());
    Ticket t{calls_.push(), -1, -1};
    progress();
    return t;
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    return start_message(true, const_cast<void*>(data), bytes, to, tag);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) { return start_message(false, data, bytes, from, tag); }
  void progress() {
    called();
    look_for_failure();
    guarded([&] {
      while (step()) {}
    });
  }
  bool test(Ticket& t) {
    progress();
    const bool any_left = client().any_left(), is = done(t);
    if (!is) move_others(this);
    if (!is && any_left) look_for_departures(t.message < 0 ? nullptr : &t);
    return is;
  }
  void wait(Ticket& t) {
    called();
    wait_until([&] { return done(t); }, t.number, t.message < 0 ? nullptr : &t);
  }
  /// A call is left while an exception passes: nobody touches its memory once this returns, and the others are told.
  void abandon() {
    called_to_end();
    end_all(abandoned_text(names_, rank_));
  }
  /// This rank makes no further call. `why`: an exception leaves a part; who waits for this rank is told that, and the whole
  /// lives. Else what was sent is delivered, and the others may read it before a connection is closed.
  void leave(const std::string& why = {}) noexcept {
    if (failed_ || size_ == 1) return;
    failed_ = !why.empty();
    try {
      if (why.empty()) deliver();
      control_.engine().leave(why);
      if (connections_)
        client().wait_left(control_.engine().group(), static_cast<std::size_t>(size_ - 1), std::chrono::milliseconds(250));
    } catch (const std::exception&) {}
  }
  /// Ends all ranks with a message; those of a part in it alone.
  [[noreturn]] void fail(const std::string& message) {
    end_all(message);
    throw_failed(message_);
  }
  /// What fail() does, but that it throws nothing.
  void end_all(const std::string& message) {
    if (failed_) return;
    set_message(message);
    control_.fail(message_);
    end();
  }

 private:
  /// Over connections threads move what is under way.
  bool under_way() const override { return memory_ && !failed_ && (!calls_.empty() || links_->active() > 0); }
  bool move_on() override { return look_for_failure(), guarded_step(); }
  Ticket start_message(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    called();
    look_for_failure();
    if (size_ == 1) return sends ? self_.start_send(data, bytes, peer, tag) : self_.start_recv(data, bytes, peer, tag);
    if (links_) return links_->start(sends, data, bytes, peer, tag);
    Ticket t;
    guarded([&] { t = connections_->messages().start(sends, data, bytes, peer, tag); });
    return t;
  }
  bool done(Ticket& t) {
    bool is = false;
    guarded([&] {
      if (size_ == 1) is = self_.test(t);
      else if (t.message >= 0) is = links_ ? links_->test(t) : connections_->messages().test(t);
      else is = (memory_ ? calls_.complete() : connections_->collectives().complete()) >= t.number;
    });
    return is;
  }
  /// One piece of work in shared memory; false where nothing could be done.
  bool step() {
    if (!memory_) return false;
    const bool moved = links_->progress();
    if (calls_.empty()) return moved;
    const bool worked = memory_->step();
    if (!memory_->done()) return worked || moved;
    calls_.pop();
    if (!calls_.empty()) memory_->begin(calls_.oldest(), calls_.complete());
    return true;
  }
  template <class F> void guarded(F&& f) {
    try {
      f();
    } catch (const CommError& e) { fail(e.what()); } catch (const std::system_error& e) {
      fail(threads_text(names_.name(rank_), e));
    } catch (...) {  // of a function of the user's that reduces
      abandon();
      throw;
    }
  }
  bool guarded_step() {
    bool moved = false;
    guarded([&] { moved = step(); });
    return moved;
  }
  // Works and waits until done() is true: of the collective `number`, or a message.
  template <class Done> void wait_until(Done&& is_done, std::uint64_t number, const Ticket* message) {
    Deadline timer(options_.deadline);
    bool others = false;  // have moved
    for (int turn = 0; !is_done();) {
      look_for_failure();
      const bool any_left = client().any_left();  // before what they have left behind is looked at
      bool moved = false;
      guarded([&] { moved = step() || (connections_ && connections_->moved()); });
      if (moved) turn = 0, timer.stop();
      else if (any_left) look_for_departures(message);
      if (moved || (!others && sleep(timer, turn, number, message))) continue;
      others = move_others(this);
      if (others) {
        timer.stop();
        continue;
      }
      timer.start();
      if (!timer.over()) continue;
      if (guarded_step() || (connections_ && connections_->moved())) timer.stop();  // it came while this rank stood still
      else if (is_done()) return;
      else overdue(message);
    }
  }
  /// True where no time is to be looked at. `turn`: how often nothing has moved; of a collective in shared memory, that a sleep
  /// has come to its end.
  bool sleep(Deadline& timer, int& turn, std::uint64_t number, const Ticket* message) {
    const std::chrono::nanoseconds interval = nap(this, timer.sleep_interval());
    if (connections_) {
      if (!message) return connections_->collectives().wait(number, interval);
      connections_->messages().wait(*message, interval);
      return false;
    }
    if (memory_ && !message && links_->active() == 0 && memory_->need().line) {
      if (wait_for(memory_->need(), turn == 0 ? spins_ : 0, Reach::Machine, interval)) return true;
      turn = 1;
      return false;
    }
    if (turn++ < 200) return std::this_thread::yield(), true;
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 2000 ? 20 : 200));
    return false;
  }
  std::string describe_message(const Ticket& t) {
    const std::string what = size_ == 1 ? "a message" : links_ ? links_->describe(t) : connections_->messages().describe(t);
    return what + " on " + names_.name(rank_) + InPublicCall::text() + ": ";
  }
  /// What is waited for, and nothing has moved, may be of ranks that have left. (Over connections a collective's thread sees it.)
  void look_for_departures(const Ticket* message) {
    if (size_ == 1) return;
    if (message) {
      const auto could = [&](int r) { return may_be_peer(message->peer, rank_, r); };
      std::string left = connections_ ? connections_->messages().left_behind(*message) : some_ranks_text(names_, could);
      if (links_ && !some_ranks_text(names_, [&](int r) { return could(r) && !has_left(r); }).empty()) left.clear();
      const bool moved = links_ && !left.empty() && guarded_step();  // by what came between the last look and their leave
      if (!moved && !left.empty())
        fail(client().why_left(control_.engine().group(), describe_message(*message) + left + GlooConnections::will_not_arrive));
    } else if (memory_ && !calls_.empty()) {
      const std::string text = memory_->departed_text([&](int r) { return has_left(r); });
      if (!text.empty()) fail(client().why_left(control_.engine().group(), text));
    }
  }
  void overdue(const Ticket* message) {
    if (message) fail(describe_message(*message) + "no counterpart within " + seconds_text(options_.deadline));
    if (connections_) {
      connections_->stop_collectives();
      fail(connections_->collectives().missing_text(options_.deadline));
    }
    if (const std::string text = memory_->missing_text(options_.deadline); !text.empty()) fail(text);
  }

  /// Throws what has ended this communicator, once nobody works in the caller's memory.
  void look_for_failure() {
    if (!failed_ && memory_ && segment_.failed()) fail(segment_.message());
    if (!failed_ && control_.engine().failed()) {
      try {
        control_.engine().check();
      } catch (const CommError& e) { set_message(e.what()); }
      end();
    }
    if (failed_) throw_failed(message_);
  }
  void set_message(const std::string& first) {
    if (memory_) segment_.fail(first);
    message_ = memory_ ? segment_.message() : first;
  }
  void end() {
    failed_ = true;
    if (memory_) memory_->withdraw(), links_->keep();
    if (connections_) connections_->stop();
  }
  control::Client& client() { return control_.engine().client(); }
  void deliver() {
    const auto takes = [&](int r) { return !has_left(r); };
    const auto over = [&] { return move_others(nullptr), control_.engine().failed() || !links_->waits_for(takes); };
    if (links_) links_->deliver(options_.deadline, over);
    for (auto timer = Deadline::from_now(options_.deadline); connections_ && !timer.over() && !control_.engine().failed();)
      if (connections_->messages().deliver_all(std::chrono::milliseconds(20))) return;
  }

  ControlComm& control_;
  CommOptions options_;
  RankNames names_;
  int rank_, size_;
  int spins_ = 0;
  SelfEngine self_;  // of one rank
  Segment segment_;  // with the three behind it: on one machine
  std::optional<SharedTransport> memory_;
  std::optional<SharedLinks> links_;
  CallRing<CollectiveCall> calls_;
  std::optional<GlooConnections> connections_;  // on several
  bool failed_ = false;
  std::string message_;
};

}  // namespace skein::inline SKEIN_ABI::comm
