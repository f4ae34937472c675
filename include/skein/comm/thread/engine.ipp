// SPDX-License-Identifier: Apache-2.0
// The bodies of engine.hpp.
#pragma once
#include <algorithm>

#include "../transfer.hpp"
#include "engine.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void ThreadEngine::run(const CollectiveCall& o) {
  Ticket t = start(o);
  wait(t);
}

SKEIN_INLINE Ticket ThreadEngine::start(const CollectiveCall& o) {
  called();
  if (team_->failure->happened()) throw_failure();
  while (tail_ - head_ == Team::ring) wait_until(head_ + 1);  // what is moved meanwhile may take the place
  team_->post(rank_, tail_) = o;
  publish(own(), Team::Posted, static_cast<std::uint32_t>(++tail_), Reach::Process);
  return {tail_, -1, -1};
}

SKEIN_INLINE void ThreadEngine::progress() {
  called();
  if (team_->failure->happened()) throw_failure();
  while (step()) {}
}

SKEIN_INLINE void ThreadEngine::wait(Ticket& t) {
  called();
  if (t.message < 0) wait_until(t.number);
  else wait_for_message(t);
}

SKEIN_INLINE Message& ThreadEngine::spin_for_message(const Ticket& t) {
  Message& m = team_->pools[static_cast<std::size_t>(rank_)][t.message];
  for (int i = 0; i < team_->spins && m.state.load(std::memory_order_acquire) == Message::Pending; ++i)
    skein::detail::cpu_relax();
  return m;
}

SKEIN_INLINE bool ThreadEngine::wait_some(Ticket& t, std::chrono::nanoseconds limit) {
  constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(20);  // then a failure is looked for
  const double end = seconds_now() + std::chrono::duration<double>(limit).count();
  Message* const message = t.message < 0 ? nullptr : &spin_for_message(t);
  while (!test(t)) {
    const std::chrono::nanoseconds left(static_cast<long long>(1e9 * std::min(1.0, end - seconds_now())));
    if (left.count() <= 0) return false;
    const std::chrono::nanoseconds sleep = nap(this, std::min(left, longest));
    if (message) message->sleep(sleep);
    else wait_for(need_, team_->spins, Reach::Process, sleep);
  }
  return true;
}

SKEIN_INLINE Ticket ThreadEngine::start_send(const void* data, std::size_t bytes, int to, int tag) {
  return put(true, const_cast<void*>(data), bytes, to, to, tag);
}

SKEIN_INLINE void ThreadEngine::abandon() {
  called_to_end();
  team_->failure->abandon(team_->names.number(rank_));
  quiesce();
}

SKEIN_INLINE void ThreadEngine::leave() {
  leave_thread();
  own().gone.store(1, std::memory_order_seq_cst);
  team_->wake_everyone();
}

SKEIN_INLINE void ThreadEngine::fail(const std::string& message) {
  called();
  team_->failure->set(team_->names.number(rank_), message);
  throw_failure();
}

SKEIN_INLINE bool ThreadEngine::step() {
  if (worked_ < tail_ && all(Team::Posted, worked_ + 1, posted_scan_)) {
    try {
      work(worked_++);
    } catch (...) {  // a function of the user's may throw: what is missing of the sum is said to all
      abandon();
      throw;
    }
    publish(own(), Team::Done, static_cast<std::uint32_t>(worked_), Reach::Process);
    posted_scan_ = 0;
    return true;
  }
  if (head_ < worked_ && all(Team::Done, head_ + 1, done_scan_)) {
    ++head_;
    done_scan_ = 0;
    return true;
  }
  return false;
}

SKEIN_INLINE bool ThreadEngine::all(int which, std::uint64_t value, int& scan) {
  for (; scan < team_->size; ++scan) {
    need_ = {&team_->line(scan), which, static_cast<std::uint32_t>(value)};
    if (!need_.met()) return false;
  }
  return true;
}

SKEIN_INLINE void ThreadEngine::work(std::uint64_t call) {
  struct Busy {
    explicit Busy(Counter& c) : flag(c) { flag.store(1, std::memory_order_seq_cst); }
    ~Busy() { flag.store(0, std::memory_order_release); }
    Counter& flag;
  };
  const auto post = [&](int r) -> const CollectiveCall& { return team_->post(r, call); };
  bool same = true, failed = false;
  {
    const Busy busy(own().busy);
    failed = team_->failure->happened();
    for (int r = 0; r < team_->size && !failed; ++r) same = same && post(r).signature == post(rank_).signature;
    if (same && !failed) work_direct(rank_, team_->size, post, pointers_);
  }
  if (failed) throw_failure();
  if (!same) fail(mismatch_text(call, team_->names, [&](int r) { return post(r).signature; }));
}

SKEIN_INLINE void ThreadEngine::wait_until(std::uint64_t number) {
  Deadline timer(team_->options.deadline);
  bool moved = false;  // elsewhere
  while (head_ < number) {
    if (step()) {
      timer.stop();
      continue;
    }
    const std::chrono::nanoseconds sleep = moved ? std::chrono::nanoseconds(0) : nap(this, timer.sleep_interval());
    if (wait_for(need_, timer.waited() > 0 || moved ? 0 : team_->spins, Reach::Process, sleep)) continue;
    moved = move_others(this);
    if (moved) timer.stop();
    else check(timer, nullptr);
  }
}

SKEIN_INLINE bool ThreadEngine::has_come(const Message* message) const {
  return message ? message->state.load(std::memory_order_seq_cst) != Message::Pending : need_.met();
}

SKEIN_INLINE void ThreadEngine::check(Deadline& timer, const Message* message) {
  if (team_->failure->happened()) throw_failure();
  look_for_who_left(message);
  if (has_come(message)) return;
  timer.start();
  if (!timer.over() || has_come(message)) return;  // this rank may have stood still since it looked
  const std::string within = " within " + seconds_text(timer.limit());
  if (message) fail(message_text(*message) + "no counterpart" + within);
  const bool absent = need_.which == Team::Posted;
  const std::string text = call_text(ranks_text(team_->names, [&](int r) { return lacks(r); }), absent);
  if (need_.met()) return;
  fail(text + (absent ? " did not arrive" + within
                      : " arrived but made no progress" + within + ": what is started has to be polled or waited for"));
}

SKEIN_INLINE void ThreadEngine::look_for_who_left(const Message* message) {
  const auto gone = [&](int r) { return team_->line(r).gone.load(std::memory_order_seq_cst) != 0; };
  if (!message) {
    const std::string who = some_ranks_text(team_->names, [&](int r) { return gone(r) && lacks(r); });
    if (!who.empty()) fail(call_text(who, true) + " returned and will not arrive");
    return;
  }
  const int peer = message->peer;
  bool all_gone = peer != rank_ && team_->size > 1;
  for (int r = 0; r < team_->size; ++r) all_gone = all_gone && (!may_be_peer(peer, rank_, r) || gone(r));
  if (!all_gone || has_come(message)) return;
  fail(message_text(*message) + (peer < 0 ? "all other ranks have returned and make no further call"
                                          : "that rank has returned and makes no further call"));
}

SKEIN_INLINE std::string ThreadEngine::message_text(const Message& m) const {
  const RankNames& names = team_->names;
  return skein::text("{}{} (tag {}) on {}{}: ", (m.sends ? "send to " : "recv from "), names.name(m.peer), m.tag,
                     names.name(rank_), InPublicCall::text());
}

SKEIN_INLINE std::string ThreadEngine::call_text(const std::string& who, bool absent) const {
  const std::uint64_t call = head_ < worked_ ? head_ : worked_;
  const Signature& own = team_->post(rank_, call).signature;
  return skein::text("{}{} (call {}): {}", (absent ? not_called_text(own, who) : ""), describe(own, team_->names), call, who);
}

SKEIN_INLINE void ThreadEngine::quiesce() {
  team_->wake_everyone();
  for (int r = 0; r < team_->size; ++r)
    while (r != rank_ && team_->line(r).busy.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  MessagePool& pool = team_->pools[static_cast<std::size_t>(rank_)];
  for (int i = 0; i < pool.size(); ++i) {
    Message& m = pool[i];
    if (m.kept || m.state.load(std::memory_order_acquire) != Message::Pending) continue;
    if (team_->boxes[static_cast<std::size_t>(m.box)].take_back(m)) m.finish(Message::Done);
    while (m.state.load(std::memory_order_acquire) == Message::Pending) std::this_thread::yield();
  }
}

SKEIN_INLINE void ThreadEngine::throw_failure() {
  quiesce();
  throw_failed(team_->failure->message());
}

SKEIN_INLINE Ticket ThreadEngine::put(bool sends, void* data, std::size_t bytes, int peer, int box, int tag) {
  called();
  if (team_->failure->happened()) throw_failure();
  MessagePool& pool = team_->pools[static_cast<std::size_t>(rank_)];
  const int index = pool.take();
  Message& m = pool[index];
  m.owner = rank_;
  m.peer = peer;
  m.tag = tag;
  m.box = box;
  m.sends = sends;
  m.kept = false;
  m.from = static_cast<const char*>(data);
  m.to = static_cast<char*>(data);
  m.bytes = bytes;
  m.state.store(Message::Pending, std::memory_order_relaxed);
  const std::uint64_t number = ++m_number_;
  team_->boxes[static_cast<std::size_t>(box)].put(m);
  // A kept send is complete for its sender: the message goes back to the pool when it is received.
  if (sends && m.kept) return {0, -1, peer};
  return {number, index, peer};
}

SKEIN_INLINE bool ThreadEngine::message_done(Ticket& t) {
  Message& m = team_->pools[static_cast<std::size_t>(rank_)][t.message];
  const std::uint32_t state = m.state.load(std::memory_order_acquire);
  if (state == Message::Pending) return false;
  t.peer = m.sends ? m.peer : m.sender;
  const std::size_t bytes = m.bytes, other = m.other_bytes;
  const bool sends = m.sends;
  m.state.store(Message::Free, std::memory_order_release);
  if (state == Message::WrongSize)
    throw CommError(std::string(sends ? "send" : "recv") + " on " + team_->names.name(rank_) + ": " +
                    (sends ? length_text(bytes, other) : length_text(other, bytes)));
  return true;
}

SKEIN_INLINE void ThreadEngine::wait_for_message(Ticket& t) {
  Deadline timer(team_->options.deadline);
  Message& m = spin_for_message(t);
  while (!test(t)) {
    m.sleep(head_ < tail_ ? std::chrono::nanoseconds(200000) : nap(this, timer.sleep_interval()));
    check(timer, &m);
  }
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
