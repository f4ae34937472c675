// SPDX-License-Identifier: Apache-2.0
// The bodies of engine.hpp.
#pragma once
#include "../../core/clock.hpp"
#include "engine.hpp"
#include "long_wait.hpp"
#include "same_options.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE MpiEngine::MpiEngine(MPI_Comm parent, const CommOptions& options, int node, RankNames names)
    : options_(checked_options(options)), names_(std::move(names)), node_(node) {
  MPI_Comm_rank(parent, &rank_);
  const LongWait wait("making a communicator (MPI_Comm_dup)", names_.number(rank_), LongWait::long_of(options.deadline));
  check_mpi(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  if (names_.size() == 0) names_ = RankNames(size_);
  options_ = same_options(comm_, names_, options_);
  if (options_.node_size > 0 && node_ < 0) node_ = rank_ / options_.node_size;
  MPI_Comm of_node = node_of();
  look_at(of_node);
  agree(of_node);
  MPI_Comm_free(&of_node);
  if (queue_->shares_memory()) links_.emplace(queue_->segment(), rank_, names_);
  else point_to_point_.emplace(comm_, names_, options_.message);
}

SKEIN_MPI_INLINE MpiEngine::~MpiEngine() {
  leave_thread();
  if (links_ && !failed_) deliver();
  if (queue_->shares_memory()) queue_->segment().retire(rank_);
  if (failed_ || !mpi_runs()) return;
  if (notes()) detector_->tell_leave(queue_->started());
  free_together(comm_);
}

SKEIN_MPI_INLINE void MpiEngine::run(const CollectiveCall& o) {
  Ticket t = start(o);
  wait(t);
}

SKEIN_MPI_INLINE Ticket MpiEngine::start(const CollectiveCall& o) {
  called();
  look_for_failure();
  if (queue_->full()) wait_until([&] { return !queue_->full(); }, nullptr);
  Ticket t{0, -1, -1};
  guarded([&] { t.number = queue_->push(o); });
  if (notes() && !options_.check) detector_->tell_history(options_.deadline);
  guarded([&] {
    while (step()) {}
  });
  return t;
}

SKEIN_MPI_INLINE Ticket MpiEngine::start_message(bool sends, void* data, std::size_t bytes, int peer, int tag) {
  called();
  look_for_failure();
  return with_messages([&](auto& m) { return m.start(sends, data, bytes, peer, tag); });
}

SKEIN_MPI_INLINE void MpiEngine::progress() {
  called();
  look_for_failure();
  guarded([&] {
    while (step()) {}
  });
}

SKEIN_MPI_INLINE bool MpiEngine::test(Ticket& t) {
  progress();
  bool is = false;
  guarded([&] { is = done(t); });
  if (!is) move_others(this);
  if (!is && ++tests_ % 32 == 0) look_for_the_gone(t.message < 0 ? nullptr : &t);  // who polls never comes to check()
  return is;
}

SKEIN_MPI_INLINE void MpiEngine::wait(Ticket& t) {
  called();
  if (failed_ && !done(t)) look_for_failure();  // nothing is worked on any more
  else if (!failed_) wait_until([&] { return done(t); }, t.message < 0 ? nullptr : &t);
}

SKEIN_MPI_INLINE void MpiEngine::fail(const std::string& message) {
  called_to_end();
  end_all(message);
  throw_failed(message_);
}

SKEIN_MPI_INLINE void MpiEngine::end_all(const std::string& message) {
  if (failed_) return;
  if (queue_->shares_memory()) queue_->segment().fail(message);
  else if (size_ > 1 && !verdict_received_) detector_->tell_all(message);
  queue_->keep();
  with_messages([](auto& m) { m.keep(); });
  failed_ = true;
  message_ = queue_->shares_memory() && queue_->segment().failed() ? queue_->segment().message() : message;
}

SKEIN_MPI_INLINE void MpiEngine::fail_without_throw(const std::string& message) noexcept {
  try {
    called_to_end();
    end_all(message);
  } catch (const CommError&) {}  // MPI does not tell the others
}

SKEIN_MPI_INLINE void MpiEngine::agree(MPI_Comm node) {
  static int made = 0;
  const ReductionOrder wanted = options_.order;
  const int alone = node_size_ == size_;
  const int own[] = {++made, !options_.shared_memory, !alone};
  int most[3] = {};
  MPI_Allreduce(own, most, 3, MPI_INT, MPI_MAX, comm_);
  made = most[0];
  const bool native = wanted == ReductionOrder::native || (wanted == ReductionOrder::automatic && most[2]);
  queue_.emplace(comm_, node, rank_, names_, options_,
                 CallQueueOptions{.native = native, .shares_memory = !most[1], .one_node = !most[2]});
  detector_.emplace(comm_, made, rank_, names_, queue_->history());
  processes_.emplace(comm_, rank_, size_);
}

SKEIN_MPI_INLINE MPI_Comm MpiEngine::node_of() const {
  MPI_Comm node = MPI_COMM_NULL;
  if (options_.node_size > 0) check_mpi(MPI_Comm_split(comm_, node_, rank_, &node), "MPI_Comm_split");
  else check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return node;
}

SKEIN_MPI_INLINE void MpiEngine::look_at(MPI_Comm node) {
  MPI_Comm_size(node, &node_size_);
  MPI_Comm_rank(node, &node_rank_);
  const Cores own = own_cores();
  std::vector<Cores> all(static_cast<std::size_t>(node_size_));
  constexpr int bytes = static_cast<int>(sizeof own);
  MPI_Allgather(&own, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, node);
  spins_ = spins_of(all);
}

SKEIN_MPI_INLINE bool MpiEngine::guarded_step() {
  bool moved = false;
  guarded([&] { moved = step(); });
  return moved;
}

SKEIN_MPI_INLINE bool MpiEngine::step() {
  const bool moved = with_messages([](auto& m) { return m.progress(); });
  return queue_->step() || moved;
}

SKEIN_MPI_INLINE void MpiEngine::look_for_difference() {
  detector_->ask();
  auto grace = Deadline::from_now(std::min(1.0, options_.deadline / 4));
  while (!grace.over() && !detector_->all_answered()) {
    serve();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

SKEIN_MPI_INLINE void MpiEngine::look_for_failure() {
  if (failed_) throw_failed(message_);
  if (queue_->shares_memory()) {
    if (queue_->segment().failed()) fail(queue_->segment().message());
  } else if (size_ > 1 && ++looks_ % 32 == 0) {
    // Not at each of them: a question that MPI answers with "nothing there" may give the core to another process.
    const double now = seconds_now();
    const bool called = queue_->started() - looked_at_ >= FailureDetector::told_calls;  // the histories are short
    if (!called && now - looked_ < 0.005) return;
    looked_ = now;
    looked_at_ = queue_->started();
    serve();
  }
}

SKEIN_MPI_INLINE void MpiEngine::take_notes() {
  std::optional<std::string> difference;
  try {
    detector_->serve();
    if (!failed_ && !options_.check) difference = detector_->difference();  // else each call is compared, by all
  } catch (const CommError& e) {
    verdict_received_ = true;
    fail(e.what());
  }
  if (difference) fail(*difference);
}

SKEIN_MPI_INLINE bool MpiEngine::idle(int turn) {
  if (turn < spins_) {
    for (int i = 0; links_ && i < 32; ++i) skein::detail::cpu_relax();
    return turn % 16 == 15;
  }
  if (turn < spins_ + 200) {
    sched_yield();
    return turn % 16 == 15;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(turn < spins_ + 2000 ? 20 : 200));
  return true;
}

SKEIN_MPI_INLINE void MpiEngine::check(Deadline& timer, const Ticket* message) {
  look_for_failure();
  if (notes()) serve([&] { return waiting_text(message); });
  look_for_the_gone(message);
  if (!timer.over()) return;
  if (guarded_step()) return timer.stop();  // it came while this rank stood still
  const std::string text = waiting_text(message) + ": ";
  const std::string within = " within " + seconds_text(timer.limit());
  if (message) {
    fail(text + "no counterpart" + within);
  } else if (const SharedTransport* const memory = queue_->through_memory()) {
    if (const std::string missing = memory->missing_text(timer.limit()); !missing.empty()) fail(missing);
  } else {
    ask_who_is_missing(text, within, timer.limit());
  }
}

SKEIN_MPI_INLINE void MpiEngine::look_for_the_gone(const Ticket* message) {
  look_for_the_dead(message);
  if (message) look_for_who_left(*message);
  else if (const SharedTransport* const memory = queue_->through_memory()) look_for_who_left(*memory);
  else if (notes()) look_for_who_left();
}

SKEIN_MPI_INLINE void MpiEngine::look_for_who_left(const SharedTransport& memory) {
  const std::string text = memory.departed_text([&](int r) { return queue_->segment().is_gone(r) && !memory.has_begun(r); });
  if (!text.empty()) fail(text);
}

SKEIN_MPI_INLINE void MpiEngine::look_for_who_left() {
  const std::string who = some_ranks_text(names_, [&](int r) { return detector_->has_left_before(r, queue_->complete()); });
  if (who.empty()) return;
  fail(not_called_text(queue_->current().signature, who) + waiting_text(nullptr) + ": " + who + " returned and will not arrive");
}

SKEIN_MPI_INLINE void MpiEngine::look_for_who_left(const Ticket& message) {
  const auto could = [&](int r) { return may_be_peer(message.peer, rank_, r); };
  const auto is_there = [&](int r) { return !(links_ ? queue_->segment().is_gone(r) : detector_->has_left(r)); };
  const std::string who = some_ranks_text(names_, could);
  if (who.empty() || !some_ranks_text(names_, [&](int r) { return could(r) && is_there(r); }).empty()) return;
  if (!guarded_step())  // nothing that came between the last look and their leave
    fail(waiting_text(&message) + ": " + who + " returned and will not arrive");
}

SKEIN_MPI_INLINE void MpiEngine::deliver() {
  const auto takes = [&](int r) {
    return !queue_->segment().is_gone(r) && !(processes_->any_ended() && processes_->has_ended(r));
  };
  links_->deliver(options_.deadline, [&] {
    move_others(nullptr);
    return queue_->segment().failed() || !links_->waits_for(takes);
  });
}

SKEIN_MPI_INLINE void MpiEngine::look_for_the_dead(const Ticket* message) {
  if (!processes_->any_ended()) return;
  std::vector<int> dead;
  for (int r = 0; r < size_; ++r)
    if (processes_->has_ended(r)) dead.push_back(names_.number(r));
  fail(waiting_text(message) + ": " + gone_text({dead.data(), dead.size()}));
}

SKEIN_MPI_INLINE std::string MpiEngine::waiting_text(const Ticket* message) {
  if (message)
    return with_messages([&](auto& m) { return m.describe(*message); }) + " on " + names_.name(rank_) + InPublicCall::text();
  return skein::text("{} (call {})", describe(queue_->current().signature, names_), queue_->complete());
}

SKEIN_MPI_INLINE void MpiEngine::ask_who_is_missing(const std::string& text, const std::string& within, double limit) {
  const std::uint64_t call = queue_->complete();
  detector_->ask();
  // However short the deadline is: a busy machine may not run a rank that waits too for some tenths of a second.
  auto grace = Deadline::from_now(std::min(2.0, std::max(1.0, limit / 4)));
  while (!grace.over() && !detector_->all_answered()) {
    serve([&] { return waiting_text(nullptr); });
    guarded([&] { step(); });
    if (queue_->complete() != call) return;  // it arrived after all
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  const auto silent = [&](int r) { return r != rank_ && !detector_->answered(r); };
  TextList found("; ");
  if (const std::string absent = some_ranks_text(names_, silent); !absent.empty()) found.add(absent + " did not arrive" + within);
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && !silent(r) && detector_->call(r) < call) found.add(names_.name(r) + " waits in " + detector_->text(r));
  const auto late = [&](int r) { return r != rank_ && (silent(r) || detector_->call(r) < call); };
  const std::string not_called = found.empty() ? "" : not_called_text(queue_->current().signature, ranks_text(names_, late));
  const std::string arrived = "all ranks have arrived, and no message has" + within + ": look at the network";
  fail(not_called + text + found.or_words(arrived));
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
