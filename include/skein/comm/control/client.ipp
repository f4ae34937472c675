// SPDX-License-Identifier: Apache-2.0
// The bodies of client.hpp.
#pragma once
#include "../progress.hpp"
#include "client.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE Client::Client(Descriptor connection, int rank, int size, double deadline, std::unique_ptr<Server> server)
    : rank_(rank), size_(size), deadline_(deadline), connection_(std::move(connection)), server_(std::move(server)) {
  auto [in, out] = connected_pair();
  wake_ = std::move(in);
  woken_ = std::move(out);
  reader_.trust();
  groups_[0] = {.others = static_cast<std::size_t>(size - 1), .opened = true};
  thread_ = std::thread([this] { serve(); });
}

SKEIN_INLINE Client::~Client() {
  if (!failed()) send({Kind::Goodbye, 0, 0, 0, {}});
  stopping_.store(true);
  poke();
  thread_.join();
  connection_ = Descriptor();
  if (server_) server_->finish(failed() ? 1.0 : deadline_.load());
}

SKEIN_INLINE std::string Client::exchange(std::uint32_t group, std::uint64_t number, std::string payload) {
  std::unique_lock lock(mutex_);
  if (const std::string* const text = verdict(group)) Progress::throw_failed(*text);
  const double limit = std::min(1e8, deadline_.load());  // of an infinite deadline: three years, which a frame can carry
  waits_in_ = skein::text("{} (call {})", describe_exchange(payload, groups_[group].names), number);
  waited_ = {group, number};
  answer_.reset();
  lock.unlock();
  send({Kind::Exchange, group, number, limit, std::move(payload)});
  lock.lock();
  AwakeClock clock(1.5);
  const double over = clock.now() + limit + std::max(3.0, limit / 2);
  while (!answer_ && !verdict(group) && clock.now() < over) {
    (void)arrived_.wait_for(lock, Progress::nap(nullptr, std::chrono::seconds(1)), [&] { return answer_ || verdict(group); });
    lock.unlock();
    Progress::move_others(nullptr);
    lock.lock();
  }
  waits_in_.clear();
  // A rank that fails after the exchange does not undo it: the next call says so.
  if (answer_) return *std::exchange(answer_, std::nullopt);
  if (!verdict(group)) {
    lock.unlock();
    set_failed("the coordinator on rank 0 does not answer within " + seconds_text(limit) +
               ": its process was stopped, or the network is");
    lock.lock();
  }
  Progress::throw_failed(*verdict(group));
}

SKEIN_INLINE void Client::open(std::uint32_t group, const std::vector<int>& members) {
  {
    const std::lock_guard lock(mutex_);
    GroupState& g = groups_[group];
    g.names = RankNames(members), g.others = members.size() - 1, g.opened = true;
  }
  send({Kind::Open, group, 0, 0, std::string(reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int))});
}

SKEIN_INLINE void Client::leave(std::uint32_t group, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = groups_.find(group);
    if (at != groups_.end()) at->second.own_left = true;
    if (at != groups_.end() && at->second.all_left()) groups_.erase(at);
  }
  send({Kind::Left, group, 0, 0, why.substr(0, 4000)});
}

SKEIN_INLINE bool Client::has_left(std::uint32_t group, int place) {
  const std::lock_guard lock(mutex_);
  const auto at = groups_.find(group);
  return at == groups_.end() || at->second.left.count(place) > 0;  // a group that is forgotten: all have
}

SKEIN_INLINE std::string Client::why_left(std::uint32_t group, const std::string& otherwise) {
  const std::lock_guard lock(mutex_);
  const auto at = groups_.find(group);
  return at == groups_.end() || at->second.why.empty() ? otherwise : at->second.why;
}

SKEIN_INLINE std::size_t Client::left(std::uint32_t group) {
  const std::lock_guard lock(mutex_);
  const auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second.left.size();
}

SKEIN_INLINE void Client::wait_left(std::uint32_t group, std::size_t members, std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  (void)arrived_.wait_for(lock, limit, [&] {
    const auto at = groups_.find(group);
    return verdict(group) || at == groups_.end() || at->second.left.size() >= members;  // it is forgotten when all have
  });
}

SKEIN_INLINE void Client::report_overdue(std::uint32_t group, std::uint64_t call, double limit, const std::string& what) {
  send({Kind::Overdue, group, call, std::min(1e8, limit), what});
}

SKEIN_INLINE void Client::fail(const std::string& message) {
  send({Kind::Fail, 0, 0, 0, message.substr(0, 4000)});
  set_failed(message);
}

SKEIN_INLINE void Client::check() {
  if (!failed()) return;
  const std::lock_guard lock(mutex_);
  throw CommError(message_);
}

SKEIN_INLINE void Client::fail_group(std::uint32_t group, const std::string& message) {
  if (group == 0) return fail(message);
  send({Kind::Fail, group, 0, 0, message.substr(0, 4000)});
  set_group_failed(group, message);
}

SKEIN_INLINE bool Client::group_failed(std::uint32_t group) {
  if (failed() || !any_group_failed_.load(std::memory_order_acquire)) return failed();
  const std::lock_guard lock(mutex_);
  return verdict(group) != nullptr;
}

SKEIN_INLINE void Client::check_group(std::uint32_t group) {
  if (!group_failed(group)) return;
  const std::lock_guard lock(mutex_);
  if (const std::string* const text = verdict(group)) throw CommError(*text);
}

SKEIN_INLINE const std::string* Client::verdict(std::uint32_t group) const {
  if (failed_) return &message_;
  const auto at = groups_.find(group);
  return at == groups_.end() || at->second.verdict.empty() ? nullptr : &at->second.verdict;
}

SKEIN_INLINE void Client::set_group_failed(std::uint32_t group, const std::string& message) {
  const std::lock_guard lock(mutex_);
  const auto at = groups_.find(group);
  if (at == groups_.end() || !at->second.verdict.empty()) return;
  at->second.verdict = message.empty() ? "a rank failed" : message;
  any_group_failed_.store(true, std::memory_order_release);
  arrived_.notify_all();
}

SKEIN_INLINE void Client::add(Watched* w) {
  const std::lock_guard lock(watch_mutex_);
  watched_.push_back(w);
}

SKEIN_INLINE void Client::remove(Watched* w) {
  const std::lock_guard lock(watch_mutex_);
  watched_.erase(std::remove(watched_.begin(), watched_.end(), w), watched_.end());
}

SKEIN_INLINE void Client::send(const Frame& f) {
  const std::lock_guard lock(write_mutex_);
  // Where it cannot be written, the reading thread finds the end of the connection.
  if (connection_) (void)write_all(connection_.get(), encode(f), std::min(1e6, deadline_.load()));
}

SKEIN_INLINE void Client::set_failed(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    message_ = message.empty() ? "a rank failed" : message;
    failed_ = true;
  }
  arrived_.notify_all();
  const std::lock_guard lock(watch_mutex_);
  for (Watched* w : watched_) w->abort(message);
}

SKEIN_INLINE void Client::serve() {
  bool running = false;
  while (true) {
    pollfd p[2] = {{connection_.get(), POLLIN, 0}, {woken_.get(), POLLIN, 0}};
    (void)::poll(p, 2, running ? 10 : -1);
    if (p[1].revents) {
      char some[256];
      while (::recv(woken_.get(), some, sizeof some, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof some)) {}
    }
    if (p[0].revents) receive();
    if (stopping_.load() || failed()) return;
    running = false;
    const std::lock_guard lock(watch_mutex_);
    for (Watched* w : watched_) running = w->tick() || running;
  }
}

SKEIN_INLINE void Client::receive() {
  const bool ended = !read_available(connection_.get(), reader_);
  try {
    while (std::optional<Frame> f = reader_.next()) take(*f);
  } catch (const Error& e) { return set_failed(std::string("the coordinator on rank 0 cannot be understood: ") + e.what()); }
  if (ended && !stopping_.load())
    set_failed("rank 0, whose process holds the coordinator, is gone: its process ended (killed, or crashed): see its output");
}

SKEIN_INLINE void Client::take(Frame& f) {
  if (f.kind == Kind::Fail) return f.group == 0 ? set_failed(f.payload) : set_group_failed(f.group, f.payload);
  if (f.kind == Kind::Query) {
    std::uint64_t started = 0;
    {
      const std::lock_guard lock(watch_mutex_);
      for (Watched* w : watched_)
        if (w->group() == f.group) started = w->started();
    }
    std::string waits;
    {
      const std::lock_guard lock(mutex_);
      waits = waits_in_;
    }
    return send({Kind::State, f.group, started, 0, waits});
  }
  if (f.kind != Kind::Gathered && f.kind != Kind::Left) return;
  const std::lock_guard lock(mutex_);
  if (f.kind == Kind::Left) {
    const auto at = groups_.try_emplace(f.group).first;
    at->second.left.insert(static_cast<int>(f.number));
    if (at->second.why.empty()) at->second.why = f.payload;
    if (at->second.all_left()) groups_.erase(at);
    any_left_.store(true, std::memory_order_release);
    return arrived_.notify_all();
  }
  if (waited_ != std::pair{f.group, f.number}) return;
  answer_ = std::move(f.payload);
  arrived_.notify_all();
}

}  // namespace skein::inline SKEIN_ABI::comm::control
