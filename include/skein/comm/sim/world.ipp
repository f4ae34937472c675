// SPDX-License-Identifier: Apache-2.0
// The bodies of world.hpp.
#pragma once
#include "world.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SimWorld::SimWorld(int n, SimOptions options, std::shared_ptr<Failure> failure)
    : options_(std::move(options)), failure_(std::move(failure)), ranks_(static_cast<std::size_t>(n)),
      key_(random_key(options_.seed.value, 0x73696d75ull)) {  // "simu"
  auto all = std::make_shared<SimGroup>();
  for (int r = 0; r < n; ++r) all->members.push_back(r);
  groups_[{0, 0, 0}] = all;
}

SKEIN_INLINE std::shared_ptr<SimGroup> SimWorld::group(std::uint64_t parent, std::uint64_t split, int color,
                                                       const std::vector<int>& members) {
  auto& g = groups_[{parent + 1, split, color}];
  if (!g) {
    g = std::make_shared<SimGroup>();
    g->id = groups_.size() - 1;
    g->members = members;
  }
  return g;
}

SKEIN_INLINE void SimWorld::begin(int rank) {
  {
    std::unique_lock lock(mutex_);
    Rank& me = of(rank);
    me.turn.wait(lock, [&] { return current_ == rank || failure_->happened(); });
  }
  check();
  of(rank).processor = processor_seconds();
}

SKEIN_INLINE void SimWorld::end(int rank) {
  Rank& me = of(rank);
  if (!failure_->happened()) charge(me, rank);
  me.gone = true;
  me.key = sim_never;
  if (failure_->happened()) return wake();
  bool left = false;
  for (const Rank& r : ranks_) left = left || !r.gone;
  if (!left) return;
  const int next = least();
  if (next < 0) {
    failure_->set(rank, standstill());
    return wake();
  }
  give(next);
}

SKEIN_INLINE void SimWorld::wake() {
  const std::lock_guard lock(mutex_);
  for (Rank& r : ranks_) r.turn.notify_all();
}

SKEIN_INLINE void SimWorld::check() const {
  if (failure_->happened()) throw CommError(failure_->message());
}

SKEIN_INLINE double SimWorld::now(int rank) {
  enter(rank);
  return leave(rank), of(rank).at.clock;
}

SKEIN_INLINE void SimWorld::compute(int rank, double seconds) {
  enter(rank);
  if (!(seconds >= 0)) throw ArgumentError("compute: seconds are 0 or more; they are " + std::to_string(seconds));
  spend(of(rank), seconds * slowness(rank) * jitter(static_cast<std::uint64_t>(rank), of(rank).draws++));
  leave(rank);
}

SKEIN_INLINE SimReport SimWorld::report() const {
  SimReport r;
  for (const Rank& x : ranks_) r.ranks.push_back(x.at);
  return r;
}

SKEIN_INLINE Ticket SimWorld::send(int rank, const SimGroup& group, const void* data, std::size_t bytes, int to, int tag) {
  enter(rank);
  Rank& me = of(rank);
  const int there = group.members[static_cast<std::size_t>(to)];
  SimLetter letter{
      group.id,
      rank,
      tag,
      std::max(me.at.clock, me.send_free),
      takes(rank, there, static_cast<double>(bytes)) * jitter(ranks_.size() + static_cast<std::uint64_t>(rank), me.draws++),
      {}};
  const char* first = static_cast<const char*>(data);
  letter.data.assign(first, first + bytes);
  me.send_free = letter.departed + letter.takes;
  ++me.at.messages;
  me.at.bytes += static_cast<long>(bytes);
  const std::uint64_t number = ++me.numbers;
  me.sends[number] = me.send_free;
  of(there).letters.push_back(std::move(letter));
  match(there);
  leave(rank);
  return {number, 0, to};
}

SKEIN_INLINE Ticket SimWorld::receive(int rank, const SimGroup& group, void* data, std::size_t bytes, int from, int tag) {
  enter(rank);
  Rank& me = of(rank);
  const std::uint64_t number = ++me.numbers;
  me.receives[number] = {group.id, from < 0 ? -1 : group.members[static_cast<std::size_t>(from)], tag, data, bytes, 0, false, 0,
                         -1};
  match(rank);
  leave(rank);
  return {number, 0, from};
}

SKEIN_INLINE Ticket SimWorld::start(int rank, SimGroup& group, int place, std::uint64_t number, const CollectiveCall& o) {
  enter(rank);
  const std::size_t n = group.members.size(), p = static_cast<std::size_t>(place);
  while (group.first + group.calls.size() <= number) {
    SimCall call;
    call.posts.resize(n);
    call.entered.assign(n, 0);
    call.left.assign(n, 0);
    group.calls.push_back(std::move(call));
  }
  SimCall& call = group.calls[static_cast<std::size_t>(number - group.first)];
  Rank& me = of(rank);
  call.posts[p] = o;
  call.entered[p] = std::max({me.at.clock, me.send_free, me.receive_free});
  if (static_cast<std::size_t>(++call.arrived) == n) perform(group, call, number);
  leave(rank);
  return {number + 1, -1, -1};
}

SKEIN_INLINE bool SimWorld::test(int rank, SimGroup& group, int place, Ticket& t) {
  enter(rank);
  Rank& me = of(rank);
  bool fixed = true;
  double due = completion(me, group, place, t, fixed);
  if (!fixed) {  // others may have their say up to this time
    turn(rank, me.at.clock);
    due = completion(me, group, place, t, fixed);
  }
  if (due > me.at.clock) {
    const double spent = options_.poll * static_cast<double>(1u << std::min(me.polls, 10u));
    if (++me.polls > 50'000'000u) fail(rank, "rank " + std::to_string(rank) + " polls for what does not come");
    me.at.clock += spent;
    me.at.waited += spent;
    leave(rank);
    return false;
  }
  finish(rank, group, t);
  leave(rank);
  return true;
}

SKEIN_INLINE void SimWorld::wait(int rank, SimGroup& group, int place, Ticket& t) {
  enter(rank);
  Rank& me = of(rank);
  for (;;) {
    bool fixed = true;
    const double due = completion(me, group, place, t, fixed);
    if (fixed || (due <= me.at.clock && me.granted)) {
      advance(me, due);
      break;
    }
    me.granted = false;
    me.waits = &t;
    me.waits_in = &group;
    me.waits_at = place;
    turn(rank, std::max(due, me.at.clock));
    me.waits = nullptr;
    advance(me, me.key);
    me.granted = true;  // all that could come before this time has come
  }
  me.granted = false;
  finish(rank, group, t);
  leave(rank);
}

SKEIN_INLINE void SimWorld::progress(int rank) {
  enter(rank);
  turn(rank, of(rank).at.clock);
  leave(rank);
}

SKEIN_INLINE double SimWorld::processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

SKEIN_INLINE void SimWorld::charge(Rank& me, int rank) {
  if (options_.measured > 0) spend(me, options_.measured * slowness(rank) * std::max(0.0, processor_seconds() - me.processor));
}

SKEIN_INLINE void SimWorld::enter(int rank) {
  check();
  charge(of(rank), rank);
}

SKEIN_INLINE void SimWorld::leave(int rank) {
  if (options_.measured > 0) of(rank).processor = processor_seconds();
}

SKEIN_INLINE void SimWorld::spend(Rank& me, double seconds) {
  me.at.clock += seconds;
  me.at.compute += seconds;
  if (seconds > 0) me.polls = 0;
}

SKEIN_INLINE void SimWorld::advance(Rank& me, double to) {
  if (to <= me.at.clock) return;
  me.at.waited += to - me.at.clock;
  me.at.clock = to;
}

SKEIN_INLINE double SimWorld::slowness(int rank) const {
  return static_cast<std::size_t>(rank) < options_.slow.size() ? options_.slow[static_cast<std::size_t>(rank)] : 1.0;
}

SKEIN_INLINE double SimWorld::jitter(std::uint64_t stream, std::uint64_t i) const {
  return options_.jitter > 0 ? std::exp(options_.jitter * static_cast<double>(random_normal(key_, stream, i))) : 1.0;
}

SKEIN_INLINE double SimWorld::takes(int from, int to, double bytes) const {
  const plan::Level& level = options_.network.between(from, to);
  return level.alpha + level.beta * bytes;  // an empty message takes alpha
}

SKEIN_INLINE int SimWorld::least() const {
  int best = -1;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r].gone && ranks_[r].key < sim_never && (best < 0 || ranks_[r].key < ranks_[static_cast<std::size_t>(best)].key))
      best = static_cast<int>(r);
  return best;
}

SKEIN_INLINE void SimWorld::give(int next) {
  const std::lock_guard lock(mutex_);
  current_ = next;
  of(next).turn.notify_all();
}

SKEIN_INLINE void SimWorld::turn(int rank, double key) {
  Rank& me = of(rank);
  me.key = key;
  const int next = least();
  if (next == rank) return;
  if (next < 0) fail(rank, standstill());
  std::unique_lock lock(mutex_);
  current_ = next;
  of(next).turn.notify_all();
  me.turn.wait(lock, [&] { return current_ == rank || failure_->happened(); });
  lock.unlock();
  check();
}

SKEIN_INLINE void SimWorld::fail(int rank, const std::string& message) {
  failure_->set(rank, message);
  wake();
  throw CommError(failure_->message());
}

SKEIN_INLINE std::string SimWorld::standstill() {
  std::string text = "the simulation stands still:";
  for (int r = 0; r < size(); ++r) {
    Rank& me = of(r);
    text += (r ? "; rank " : " rank ") + std::to_string(r);
    if (me.gone) text += " has returned";
    else if (me.waits && me.waits->message < 0)
      text += " waits in " + describe(post_of(me).signature) + " (call " + std::to_string(me.waits->number - 1) + ")";
    else if (me.waits) {
      const auto receive = me.receives.find(me.waits->number);
      if (receive == me.receives.end()) continue;
      text += " waits for a message from " +
              (receive->second.from < 0 ? std::string("any rank") : "rank " + std::to_string(receive->second.from)) + " (tag " +
              std::to_string(receive->second.tag) + ")";
    }
  }
  return text;
}

SKEIN_INLINE const CollectiveCall& SimWorld::post_of(Rank& me) {
  return me.waits_in->calls[static_cast<std::size_t>(me.waits->number - 1 - me.waits_in->first)]
      .posts[static_cast<std::size_t>(me.waits_at)];
}

SKEIN_INLINE double SimWorld::completion(Rank& me, SimGroup& group, int place, const Ticket& t, bool& fixed) {
  fixed = true;
  if (t.message < 0) {
    const std::uint64_t number = t.number - 1;
    if (number < group.first) return me.at.clock;
    const SimCall& call = group.calls[static_cast<std::size_t>(number - group.first)];
    if (call.done) return call.left[static_cast<std::size_t>(place)];
    fixed = false;
    return sim_never;
  }
  if (const auto sent = me.sends.find(t.number); sent != me.sends.end()) return sent->second;
  const auto found = me.receives.find(t.number);
  if (found == me.receives.end()) return me.at.clock;
  const SimReceive& r = found->second;
  if (r.matched) return r.due;
  fixed = false;
  if (r.from >= 0) return sim_never;
  const auto letter = earliest(me, r);
  return letter == me.letters.end() ? sim_never : due_of(me, *letter);
}

SKEIN_INLINE bool SimWorld::fits(const SimReceive& r, const SimLetter& l) {
  return l.group == r.group && l.tag == r.tag && (r.from < 0 || r.from == l.from);
}

SKEIN_INLINE std::deque<SimLetter>::iterator SimWorld::earliest(Rank& me, const SimReceive& r) {
  auto best = me.letters.end();
  for (auto l = me.letters.begin(); l != me.letters.end(); ++l)
    if (fits(r, *l) && (best == me.letters.end() || due_of(me, *l) < due_of(me, *best))) best = l;
  return best;
}

SKEIN_INLINE void SimWorld::match(int rank) {
  Rank& me = of(rank);
  for (auto& entry : me.receives) {
    SimReceive& r = entry.second;
    if (r.matched || r.from < 0) continue;
    for (auto l = me.letters.begin(); l != me.letters.end(); ++l) {
      if (!fits(r, *l)) continue;
      take(me, r, l);
      break;
    }
  }
  if (me.waits && me.key == sim_never) renew_key(me);
  else if (me.waits) me.key = std::min(me.key, std::max(me.at.clock, key_of(me)));
}

SKEIN_INLINE void SimWorld::take(Rank& me, SimReceive& r, std::deque<SimLetter>::iterator l) {
  r.matched = true;
  r.due = me.receive_free = due_of(me, *l);
  r.peer = l->from;
  r.came = l->data.size();
  if (r.came == r.bytes && r.bytes) std::memcpy(r.to, l->data.data(), r.bytes);
  me.letters.erase(l);
}

SKEIN_INLINE double SimWorld::key_of(Rank& me) {
  bool fixed = true;
  return completion(me, *me.waits_in, me.waits_at, *me.waits, fixed);
}

SKEIN_INLINE void SimWorld::renew_key(Rank& me) {
  const double due = key_of(me);
  if (due < sim_never) me.key = std::max(due, me.at.clock);
}

SKEIN_INLINE void SimWorld::finish(int rank, SimGroup& group, Ticket& t) {
  Rank& me = of(rank);
  me.polls = 0;
  if (t.message < 0) {
    const std::uint64_t number = t.number - 1;
    if (number < group.first) return;
    ++group.calls[static_cast<std::size_t>(number - group.first)].taken;
    while (!group.calls.empty() && static_cast<std::size_t>(group.calls.front().taken) == group.members.size()) {
      group.calls.pop_front();
      ++group.first;
    }
    return;
  }
  if (me.sends.erase(t.number)) return;
  const auto found = me.receives.find(t.number);
  if (found == me.receives.end()) return;
  if (!found->second.matched) take(me, found->second, earliest(me, found->second));
  const SimReceive r = found->second;
  me.receives.erase(found);
  for (std::size_t p = 0; p < group.members.size(); ++p)
    if (group.members[p] == r.peer) t.peer = static_cast<int>(p);
  if (r.came != r.bytes)
    throw CommError("recv on rank " + std::to_string(rank) + ": the message has " + std::to_string(r.came) +
                    " bytes, the receiver's span " + std::to_string(r.bytes));
}

SKEIN_INLINE void SimWorld::perform(SimGroup& group, SimCall& call, std::uint64_t number) {
  const int n = static_cast<int>(group.members.size());
  const auto post = [&](int r) -> const CollectiveCall& { return call.posts[static_cast<std::size_t>(r)]; };
  for (int r = 1; r < n; ++r)
    if (!(post(r).signature == post(0).signature))
      fail(group.members[0], mismatch_text(number, n, [&](int q) { return post(q).signature; }));
  Pointers pointers(n);
  for (int r = 0; r < n; ++r) work_direct(r, n, post, pointers);
  for (int r = 0; r < n; ++r)
    call.entered[static_cast<std::size_t>(r)] =
        std::max(call.entered[static_cast<std::size_t>(r)], member(group, r).collective_free);
  call.left = call.entered;
  play(group, call);
  call.done = true;
  for (int r = 0; r < n; ++r) {
    Rank& x = member(group, r);
    const double left = call.left[static_cast<std::size_t>(r)];
    x.collective_free = left;
    x.send_free = std::max(x.send_free, left);
    x.receive_free = std::max(x.receive_free, left);
    if (x.waits && x.key == sim_never) renew_key(x);
  }
}

SKEIN_INLINE void SimWorld::play(SimGroup& group, SimCall& call) {
  const CollectiveCall& o = call.posts[0];
  with_table_of(o, static_cast<int>(group.members.size()), choice(group, static_cast<double>(o.bytes(o.signature.count))),
                [&](const auto& table) { play(group, call, table); });
}

SKEIN_INLINE plan::AllReduceChoice SimWorld::choice(const SimGroup& group, double bytes) const {
  const int n = static_cast<int>(group.members.size());
  plan::Network network = options_.network;
  if (n != size()) {
    bool together = true;
    for (const int m : group.members) together = together && network.together(m, group.members[0]);
    const plan::Level level = together ? network.near : network.far;
    network = {level, level, 0, network.gamma};
  }
  if (!options_.algorithm) return plan::cheapest_all_reduce(network, n, bytes);
  return {*options_.algorithm, plan::torus_columns(network, n), network.node > 0 ? network.node : n, 0};
}

}  // namespace skein::inline SKEIN_ABI::comm
