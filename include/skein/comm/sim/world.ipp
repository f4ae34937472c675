// SPDX-License-Identifier: Apache-2.0
// The bodies of world.hpp.
#pragma once
#include "../transfer.hpp"
#include "world.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SimWorld::SimWorld(int n, SimOptions options, std::shared_ptr<Failure> failure)
    : options_(std::move(options)), turn_(n, std::move(failure)), ranks_(static_cast<std::size_t>(n)),
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
  turn_.begin(rank);
  of(rank).processor = processor_seconds();
}

SKEIN_INLINE void SimWorld::end(int rank) {
  if (!failure().happened()) charge(of(rank), rank);
  if (turn_.leave(rank)) return;
  failure().set(rank, standstill());
  wake();
}

SKEIN_INLINE double SimWorld::now(int rank) {
  enter(rank);
  return leave(rank), of(rank).at.clock;
}

SKEIN_INLINE void SimWorld::compute(int rank, double seconds) {
  enter(rank);
  if (!is_time(seconds)) throw ArgumentError(skein::text("compute: seconds are 0 or more: {}", seconds));
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
  const std::uint64_t number = me.mail.add_send(me.send_free);
  of(there).mail.put(std::move(letter));
  match(there);
  leave(rank);
  return {number, 0, to};
}

SKEIN_INLINE Ticket SimWorld::receive(int rank, const SimGroup& group, void* data, std::size_t bytes, int from, int tag) {
  enter(rank);
  const int sender = from < 0 ? -1 : group.members[static_cast<std::size_t>(from)];
  const std::uint64_t number = of(rank).mail.add({group.id, sender, tag, data, bytes, 0, false, 0, -1});
  match(rank);
  leave(rank);
  return {number, 0, from};
}

SKEIN_INLINE Ticket SimWorld::start(int rank, SimGroup& group, int place, std::uint64_t number, const CollectiveCall& o) {
  enter(rank);
  const std::size_t p = static_cast<std::size_t>(place);
  SimCall& call = group.begun(number);
  Rank& me = of(rank);
  call.posts[p] = o;
  call.entered[p] = std::max({me.at.clock, me.send_free, me.mail.free_at()});
  if (static_cast<std::size_t>(++call.arrived) == group.members.size()) perform(group, call, number);
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
    if (++me.polls > 50'000'000u) fail(rank, skein::text("rank {} polls for what does not come", rank));
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
    advance(me, turn_.time(rank));
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

SKEIN_INLINE void SimWorld::turn(int rank, double time) {
  if (!turn_.wait(rank, time)) fail(rank, standstill());
}

SKEIN_INLINE void SimWorld::fail(int rank, const std::string& message) {
  failure().set(rank, message);
  wake();
  throw CommError(failure().message());
}

SKEIN_INLINE std::string SimWorld::standstill() {
  TextList ranks("; ");
  for (int r = 0; r < size(); ++r) {
    Rank& me = of(r);
    std::string state;
    if (turn_.gone(r)) state = " has returned";
    else if (me.waits && me.waits->message < 0)
      state = text(" waits in {} (call {})", describe(post_of(me).signature), me.waits->number - 1);
    else if (const SimReceive* const receive = me.waits ? me.mail.receive(me.waits->number) : nullptr)
      state = text(" waits for a message from {} (tag {})", receive->from < 0 ? "any rank" : text("rank {}", receive->from),
                   receive->tag);
    ranks.add(text("rank {}{}", r, state));
  }
  return "the simulation stands still: " + ranks.text();
}

SKEIN_INLINE const CollectiveCall& SimWorld::post_of(Rank& me) {
  return me.waits_in->call(me.waits->number - 1).posts[static_cast<std::size_t>(me.waits_at)];
}

SKEIN_INLINE double SimWorld::completion(Rank& me, SimGroup& group, int place, const Ticket& t, bool& fixed) {
  if (t.message >= 0) return me.mail.completion(t.number, me.at.clock, fixed);
  fixed = true;
  const std::uint64_t number = t.number - 1;
  if (number < group.first) return me.at.clock;
  const SimCall& call = group.call(number);
  if (call.done) return call.left[static_cast<std::size_t>(place)];
  fixed = false;
  return sim_never;
}

SKEIN_INLINE void SimWorld::match(int rank) {
  Rank& me = of(rank);
  me.mail.match();
  if (!me.waits) return;
  if (turn_.time(rank) == sim_never) renew_time(rank);
  else turn_.set_time(rank, std::min(turn_.time(rank), std::max(me.at.clock, waits_until(me))));
}

SKEIN_INLINE double SimWorld::waits_until(Rank& me) {
  bool fixed = true;
  return completion(me, *me.waits_in, me.waits_at, *me.waits, fixed);
}

SKEIN_INLINE void SimWorld::renew_time(int rank) {
  const double due = waits_until(of(rank));
  if (due < sim_never) turn_.set_time(rank, std::max(due, of(rank).at.clock));
}

SKEIN_INLINE void SimWorld::finish(int rank, SimGroup& group, Ticket& t) {
  Rank& me = of(rank);
  me.polls = 0;
  if (t.message < 0) return group.taken(t.number - 1);
  const SimReceive r = me.mail.finish(t.number);
  for (std::size_t p = 0; p < group.members.size(); ++p)
    if (group.members[p] == r.peer) t.peer = static_cast<int>(p);
  if (r.came != r.bytes) throw CommError(skein::text("recv on rank {}: {}", rank, length_text(r.came, r.bytes)));
}

SKEIN_INLINE void SimWorld::perform(SimGroup& group, SimCall& call, std::uint64_t number) {
  const int n = static_cast<int>(group.members.size());
  const auto post = [&](int r) -> const CollectiveCall& { return call.posts[static_cast<std::size_t>(r)]; };
  for (int r = 1; r < n; ++r)
    if (!(post(r).signature == post(0).signature))
      fail(group.members[0], mismatch_text(number, RankNames(group.members), [&](int q) { return post(q).signature; }));
  Pointers pointers(n);
  for (int r = 0; r < n; ++r) work_direct(r, n, post, pointers);
  for (int r = 0; r < n; ++r)
    call.entered[static_cast<std::size_t>(r)] =
        std::max(call.entered[static_cast<std::size_t>(r)], member(group, r).collective_free);
  call.left = call.entered;
  play(group, call);
  call.done = true;
  for (int r = 0; r < n; ++r) {
    const int rank = group.members[static_cast<std::size_t>(r)];
    Rank& x = of(rank);
    const double left = call.left[static_cast<std::size_t>(r)];
    x.collective_free = left;
    x.send_free = std::max(x.send_free, left);
    x.mail.set_free_at(left);
    if (x.waits && turn_.time(rank) == sim_never) renew_time(rank);
  }
}

SKEIN_INLINE void SimWorld::play(SimGroup& group, SimCall& call) {
  const CollectiveCall& o = call.posts[0];
  with_table_of(o, static_cast<int>(group.members.size()),
                group.all_reduce_choice(options_, size(), static_cast<double>(o.bytes(o.signature.count))),
                [&](const auto& table) { play(group, call, table); });
}

}  // namespace skein::inline SKEIN_ABI::comm
