// SPDX-License-Identifier: Apache-2.0
// The engine of one MpiComm rank: a queue of calls, worked on in their order by the transport that fits (shared memory where all
// ranks are on one node, messages elsewhere), and the waiting: brief spins, then sleep, with an eye on failures and the deadline.
#pragma once
#include <sched.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "../../core/error.hpp"
#include "../options.hpp"
#include "../request.hpp"
#include "failure_detector.hpp"
#include "message_transport.hpp"
#include "shared_transport.hpp"
#include "point_to_point.hpp"

namespace skein::inline SKEIN_ABI::comm {

class MpiEngine {
 public:
  static constexpr std::uint64_t ring = 64;  // calls in flight

  /// Collective over `parent`, of which it makes a communicator of its own.
  MpiEngine(MPI_Comm parent, const CommOptions& options) : options_(options) {
    check_mpi(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    look_at_node();
    plain_.emplace(comm_, rank_, size_, options_.message, options_.check);
    point_to_point_.emplace(comm_, options_.message);
    detector_.emplace(comm_, rank_, size_);
    int share = options_.shared_memory && node_size_ == size_ && size_ > 1, all = 0;
    MPI_Allreduce(&share, &all, 1, MPI_INT, MPI_MIN, comm_);
    if (all && segment_.create(comm_, rank_, size_)) shared_.emplace(segment_, rank_, size_);
  }
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;
  ~MpiEngine() {
    if (!failed_ && mpi_runs()) MPI_Comm_free(&comm_);
  }

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int node_size() const { return node_size_; }
  int node_rank() const { return node_rank_; }
  bool shares_memory() const { return shared_.has_value(); }
  bool failed() const { return failed_; }
  CommOptions& options() { return options_; }
  void set_check(bool check) {
    options_.check = check;
    plain_->set_check(check);
  }

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    look_for_failure();
    if (tail_ - head_ == ring) wait_until([&] { return tail_ - head_ < ring; }, nullptr);
    CollectiveCall& call = calls_[tail_ % ring];
    call = o;
    ++tail_;
    if (tail_ == head_ + 1) begin();
    const Ticket t{tail_, -1, -1};
    guarded([&] {
      while (step()) {}
    });
    return t;
  }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag) {
    look_for_failure();
    return point_to_point_->start(true, const_cast<void*>(data), bytes, to, tag);
  }
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag) {
    look_for_failure();
    return point_to_point_->start(false, data, bytes, from, tag);
  }
  void progress() {
    look_for_failure();
    guarded([&] {
      while (step()) {}
    });
  }
  bool test(Ticket& t) {
    progress();
    return t.message < 0 ? head_ >= t.number : point_to_point_->test(t);
  }
  void wait(Ticket& t) {
    if (t.message < 0) wait_until([&] { return head_ >= t.number; }, nullptr);
    else wait_until([&] { return point_to_point_->test(t); }, &t);
  }
  void abandon() { failed_ = true; }
  /// Ends all ranks with a message.
  [[noreturn]] void fail(const std::string& message) {
    if (!failed_ && segment_in_use()) segment_.fail(message);
    else if (!failed_ && size_ > 1 && !verdict_received_) detector_->tell_all(message);
    failed_ = true;
    message_ = segment_in_use() && segment_.failed() ? segment_.message() : message;
    throw CommError(message_);
  }

 private:
  void look_at_node() {
    MPI_Comm node = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    MPI_Comm_size(node, &node_size_);
    MPI_Comm_rank(node, &node_rank_);
    // mpirun may bind each rank to a core of its own: the cores that count are those of all ranks together.
    cpu_set_t own;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    cpu_set_t all;
    CPU_ZERO(&all);
    MPI_Allreduce(&own, &all, static_cast<int>(sizeof own), MPI_BYTE, MPI_BOR, node);
    spins_ = CPU_COUNT(&all) >= node_size_ ? 3000 : 0;
    MPI_Comm_free(&node);
  }

  CollectiveCall& current() { return calls_[head_ % ring]; }
  bool through_memory(const CollectiveCall& o) const { return shared_ && o.signature.element <= 4096; }
  void begin() {
    if (size_ == 1) return;
    if (through_memory(current())) shared_->begin(current(), head_);
    else plain_->begin(current(), head_);
  }
  bool step() {
    const bool moved = point_to_point_->progress();
    return collective_step() || moved;
  }
  bool collective_step() {
    if (head_ == tail_) return false;
    if (size_ == 1) {
      alone(current());
    } else {
      const bool memory = through_memory(current());
      const bool moved = memory ? shared_->step() : plain_->step();
      if (!(memory ? shared_->done() : plain_->done())) return moved;
    }
    ++head_;
    if (head_ < tail_) begin();
    return true;
  }
  void alone(const CollectiveCall& o) {
    Pointers p(1);
    work_direct(
        0, 1, [&](int) -> const CollectiveCall& { return o; }, p);
  }

  // What goes wrong on this rank ends the communicator on all.
  template <class F> void guarded(F&& f) {
    try {
      f();
    } catch (const CommError& e) { fail(e.what()); }
  }
  bool segment_in_use() const { return shared_.has_value(); }
  void look_for_failure() {
    if (failed_) throw CommError(message_.empty() ? "this communicator has failed" : message_);
    if (segment_in_use()) {
      if (segment_.failed()) fail(segment_.message());
    } else if (size_ > 1 && ++looks_ % 32 == 0) {
      serve("nothing");
    }
  }
  void serve(const std::string& waits_for) {
    try {
      detector_->serve(head_, waits_for);
    } catch (const CommError& e) {
      verdict_received_ = true;
      fail(e.what());
    }
  }

  // Works and waits until done() is true; `message` is the ticket of the transfer that is waited for.
  template <class Done> void wait_until(Done&& done, const Ticket* message) {
    Deadline timer(options_.deadline);
    int turns = 0;
    while (true) {
      bool finished = false, moved = false;
      guarded([&] {
        moved = step();
        finished = done();
      });
      if (finished) return;
      if (moved) continue;
      const bool memory =
          !message && point_to_point_->active() == 0 && head_ < tail_ && through_memory(current()) && shared_->need().line;
      if (memory) {
        if (wait_for(shared_->need(), turns == 0 ? spins_ : 0, Reach::Machine, timer.sleep_interval())) continue;
        turns = 1;
      } else if (!idle(turns++)) {
        continue;
      }
      timer.start();
      check(timer, message);
    }
  }
  // Waiting for messages: MPI moves data inside its calls, so look often at first, then seldom. True where time has passed.
  bool idle(int turn) {
    if (turn < spins_) {
      skein::detail::cpu_relax();
      return false;
    }
    if (turn < spins_ + 200) {
      sched_yield();
      return turn % 16 == 0;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(turn < spins_ + 2000 ? 20 : 200));
    return true;
  }

  void check(Deadline& timer, const Ticket* message) {
    look_for_failure();
    if (!segment_in_use() && size_ > 1) serve(waiting_text(message));
    if (!timer.over()) return;
    std::string text = waiting_text(message) + ": ";
    const std::string within = " within " + seconds_text(timer.limit());
    if (message) {
      fail(text + "no counterpart" + within);
    } else if (through_memory(current())) {
      const bool any_absent = absent();
      const auto missing = [&](int r) { return shared_->lacks(r) && (!any_absent || !shared_->has_begun(r)); };
      bool any = false;
      for (int r = 0; r < size_; ++r) any = any || missing(r);
      if (!any) return;
      text += ranks_text(size_, missing) +
              (any_absent ? " did not arrive" + within
                          : " arrived but made no progress" + within + ": what is started has to be polled or waited for");
      fail(text);
    } else {
      ask_who_is_missing(text, within, timer.limit());
    }
  }
  bool absent() const {
    for (int r = 0; r < size_; ++r)
      if (shared_->lacks(r) && !shared_->has_begun(r)) return true;
    return false;
  }
  std::string waiting_text(const Ticket* message) {
    if (message) return point_to_point_->describe(*message) + " on rank " + std::to_string(rank_);
    return describe(current().signature) + " (call " + std::to_string(head_) + ")";
  }
  void ask_who_is_missing(const std::string& text, const std::string& within, double limit) {
    const std::uint64_t call = head_;
    detector_->ask();
    Deadline grace(std::min(2.0, std::max(0.3, limit / 4)));
    grace.start();
    while (!grace.over() && !detector_->all_answered()) {
      serve(waiting_text(nullptr));
      guarded([&] { step(); });
      if (head_ != call) return;  // it arrived after all
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    const auto silent = [&](int r) { return r != rank_ && !detector_->answered(r); };
    std::string found;
    bool any = false;
    for (int r = 0; r < size_; ++r) any = any || silent(r);
    if (any) found = ranks_text(size_, silent) + " did not arrive" + within;
    for (int r = 0; r < size_; ++r)
      if (r != rank_ && !silent(r) && detector_->call(r) < call)
        found += (found.empty() ? "" : "; ") + ("rank " + std::to_string(r)) + " waits in " + detector_->text(r);
    if (found.empty()) found = "all ranks have arrived, and no message has" + within + ": look at the network";
    fail(text + found);
  }

  CommOptions options_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, node_size_ = 1, node_rank_ = 0, spins_ = 0;
  Segment segment_;
  std::optional<SharedTransport> shared_;
  std::optional<MessageTransport> plain_;
  std::optional<PointToPoint> point_to_point_;
  std::optional<FailureDetector> detector_;
  std::array<CollectiveCall, ring> calls_;
  std::uint64_t tail_ = 0, head_ = 0;  // calls started, complete
  unsigned looks_ = 0;
  bool failed_ = false, verdict_received_ = false;
  std::string message_;
};

}  // namespace skein::inline SKEIN_ABI::comm
