// SPDX-License-Identifier: Apache-2.0
// The engine of one MpiComm rank: its queue of collectives, its messages, and the waiting: brief spins, then sleep, with an eye
// on failures and the deadline.
#pragma once
#include <sched.h>

#include <optional>
#include <string>

#include "../../core/error.hpp"
#include "../options.hpp"
#include "../progress.hpp"
#include "../request.hpp"
#include "call_queue.hpp"
#include "failure_detector.hpp"
#include "point_to_point.hpp"
#include "process_watch.hpp"
#include "../node/shared_links.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// What MpiComm hands its calls to. Throws CommError where the communicator has failed, on every rank the same.
class MpiEngine final : Progress {
  /// f(what carries messages): shared memory, or MPI.
  template <class F> auto with_messages(F&& f) { return links_ ? f(*links_) : f(*point_to_point_); }

 public:
  /// Collective over `parent`, of which it makes a communicator of its own. `node`: that of this rank where
  /// CommOptions::node_size says them; -1: by its rank here. `names`: of a part's ranks.
  MpiEngine(MPI_Comm parent, const CommOptions& options, int node = -1, RankNames names = {});
  ~MpiEngine();

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int node() const { return node_; }
  int node_size() const { return node_size_; }
  int node_rank() const { return node_rank_; }
  bool shares_memory() const { return queue_->shares_memory(); }
  ReductionOrder order() const { return queue_->native() ? ReductionOrder::native : ReductionOrder::ranks; }
  bool failed() const { return failed_; }
  const RankNames& rank_names() const { return names_; }
  CommOptions& options() { return options_; }
  /// All-reduces in these pages copy nothing from here on. Collective, where shares_memory().
  void add(const std::shared_ptr<NodePages>& pages) { queue_->add(pages); }
  void set_check(bool check) { options_.check = check; }

  void run(const CollectiveCall& o);
  Ticket start(const CollectiveCall& o);
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    return start_message(true, const_cast<void*>(data), bytes, to, tag);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) { return start_message(false, data, bytes, from, tag); }
  void progress();
  bool test(Ticket& t);
  void wait(Ticket& t);
  /// A call is left while an exception passes: the others are told.
  void abandon() { fail_without_throw(abandoned_text(names_, rank_)); }
  /// Ends all ranks with a message.
  [[noreturn]] void fail(const std::string& message);
  /// Ends all ranks with a message, where an exception is on its way already.
  void fail_without_throw(const std::string& message) noexcept;

 private:
  bool under_way() const override {
    return !failed_ && (!queue_->idle() || (links_ ? links_->active() : point_to_point_->active()) > 0);
  }
  bool move_on() override { return look_for_failure(), guarded_step(); }
  Ticket start_message(bool sends, void* data, std::size_t bytes, int peer, int tag);
  // What fail() does, but that it throws nothing of the ranks'.
  void end_all(const std::string& message);

  // What all ranks decide alike: the communicator's id, shared memory, the order.
  void agree(MPI_Comm node);
  MPI_Comm node_of() const;
  void look_at(MPI_Comm node);

  /// MPI compares no calls: ranks tell each other.
  bool notes() const { return size_ > 1 && !queue_->shares_memory(); }
  bool step();
  bool guarded_step();
  bool done(Ticket& t) {
    return t.message < 0 ? queue_->complete() >= t.number : with_messages([&](auto& m) { return m.test(t); });
  }

  // What goes wrong on this rank ends the communicator on all.
  template <class F> void guarded(F&& f) {
    try {
      f();
    } catch (const MpiError& e) {
      if (notes() && !failed_) look_for_difference();
      fail(e.what());
    } catch (const CommError& e) { fail(e.what()); } catch (...) {  // of a function of the user's that reduces
      abandon();
      throw;
    }
  }
  // MPI's own words about calls that differ are "message truncated": ask the others what they have called.
  void look_for_difference();
  void look_for_failure();
  void serve() {
    serve([] { return std::string("nothing"); });
  }
  /// waits_for(): what this rank says to those who ask; often nobody does.
  template <class F> void serve(F&& waits_for) {
    take_notes();
    if (detector_->asked()) detector_->answer(queue_->complete(), waits_for());
  }
  void take_notes();

  // Works and waits until done() is true; `message` is the ticket of the transfer that is waited for.
  template <class Done> void wait_until(Done&& done, const Ticket* message) {
    Deadline timer(options_.deadline);
    int turns = 0;
    bool others = false;  // have moved
    while (true) {
      bool finished = false, moved = false;
      guarded([&] {
        moved = step();
        finished = done();
      });
      if (finished) return;
      if (moved) {
        timer.stop();
        if (spins_ > 0) turns = 0;  // where ranks have cores of their own, the next message is looked for as often
        continue;
      }
      SharedTransport* const memory =
          !message && with_messages([](auto& m) { return m.active(); }) == 0 ? queue_->through_memory() : nullptr;
      if (memory && memory->need().line) {
        const std::chrono::nanoseconds sleep = others ? std::chrono::nanoseconds(0) : nap(this, timer.sleep_interval());
        if (wait_for(memory->need(), turns == 0 ? spins_ : 0, Reach::Machine, sleep)) continue;
        turns = 1;
      } else if (!others && !idle(turns++)) {
        continue;
      }
      others = move_others(this);
      if (others) {
        timer.stop();
        continue;
      }
      timer.start();
      check(timer, message);
    }
  }
  // Waiting for messages: look often at first, for about a millisecond, then seldom. True where time has passed. A look at shared
  // memory takes much less time than one of MPI.
  bool idle(int turn);

  void check(Deadline& timer, const Ticket* message);
  /// Fails where a rank that is waited for has ended, or left.
  void look_for_the_gone(const Ticket* message);
  /// Fails where a rank that the current call lacks has destroyed its communicator.
  void look_for_who_left(const SharedTransport& memory);
  void look_for_who_left();
  /// Fails where all ranks that a message could come from, or go to, have left.
  void look_for_who_left(const Ticket& message);
  /// Until what has been sent has left, or nobody is there who would take it.
  void deliver();
  /// Fails where the process of a rank of this machine has ended.
  void look_for_the_dead(const Ticket* message);
  std::string waiting_text(const Ticket* message);
  void ask_who_is_missing(const std::string& text, const std::string& within, double limit);

  CommOptions options_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  RankNames names_;
  int rank_ = 0, size_ = 1, node_ = -1, node_size_ = 1, node_rank_ = 0, spins_ = 0;
  std::optional<CallQueue> queue_;
  std::optional<SharedLinks> links_;            // messages: through shared memory,
  std::optional<PointToPoint> point_to_point_;  // or by MPI
  std::optional<FailureDetector> detector_;
  std::optional<ProcessWatch> processes_;
  unsigned looks_ = 0, tests_ = 0;
  double looked_ = 0;
  std::uint64_t looked_at_ = 0;  // calls, at the last look
  bool failed_ = false, verdict_received_ = false;
  std::string message_;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "engine.ipp"
#endif
