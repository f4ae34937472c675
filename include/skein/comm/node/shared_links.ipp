// SPDX-License-Identifier: Apache-2.0
// The bodies of shared_links.hpp.
#pragma once
#include "shared_links.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SharedLinks::SharedLinks(Segment& segment, int rank, RankNames ranks)
    : segment_(segment), rank_(rank), names_(std::move(ranks)), to_(static_cast<std::size_t>(names_.size())), from_(to_.size()) {}

SKEIN_INLINE Ticket SharedLinks::start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
  const std::size_t i = free_place(pool_);
  pool_[i] = {true, false, sends, false, static_cast<char*>(data), bytes, 0, peer, tag, ++started_};
  ++active_;
  if (sends) {
    send(i);
  } else {
    ++posted_;
    take_aside(pool_[i]);
  }
  return {0, static_cast<std::int32_t>(i), peer};
}

SKEIN_INLINE bool SharedLinks::test(Ticket& ticket) {
  Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
  if (!t.complete) progress();
  if (!t.complete) return false;
  ticket.peer = t.peer;
  --active_;
  t.end(names_);
  return true;
}

SKEIN_INLINE bool SharedLinks::progress() {
  bool moved = false;
  if (kept_) return false;
  if (waiting_ > 0)
    for (std::size_t q = 0; q < to_.size(); ++q) moved = push(static_cast<int>(q)) || moved;
  if (posted_ > 0)
    for (std::size_t q = 0; q < from_.size() && posted_ > 0; ++q) moved = pull(static_cast<int>(q)) || moved;
  return moved;
}

SKEIN_INLINE void SharedLinks::send(std::size_t i) {
  Transfer& t = pool_[i];
  std::vector<Outgoing>& queue = to_[static_cast<std::size_t>(t.peer)];
  Outgoing o{{t.bytes, t.tag, 0}, t.data, 0, i, false, {}};
  if (queue.empty()) segment_.grow_link(rank_, t.peer, o.header.in_ring());
  if (queue.empty() && push(t.peer, o)) {
    t.complete = true;
    return;
  }
  if (t.bytes <= short_bytes) {
    o.is_short = true;
    o.copy.assign(t.data, t.data + t.bytes);
    t.complete = true;
  }
  queue.push_back(std::move(o));
  ++waiting_;
}

SKEIN_INLINE bool SharedLinks::push(int to) {
  std::vector<Outgoing>& queue = to_[static_cast<std::size_t>(to)];
  std::size_t gone = 0;
  bool moved = false;
  for (Outgoing& o : queue) {
    const std::uint64_t before = o.done;
    const bool all = push(to, o);
    moved = moved || o.done != before;
    if (!all) break;
    if (!o.is_short) pool_[o.transfer].complete = true;
    ++gone;
  }
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(gone));
  waiting_ -= static_cast<int>(gone);
  return moved;
}

SKEIN_INLINE bool SharedLinks::push(int to, Outgoing& o) {
  LinkLine& line = segment_.link(rank_, to);
  const Ring ring = segment_.ring(rank_, to);
  std::uint64_t at = line.produced.load(std::memory_order_relaxed);
  const std::uint64_t whole = o.header.in_ring();
  std::uint64_t room = ring.bytes - (at - line.consumed.load(std::memory_order_acquire));
  if (o.done == 0) {
    if (room < sizeof(Header)) return false;
    std::memcpy(ring.data + at % ring.bytes, &o.header, sizeof(Header));
    at += sizeof(Header), room -= sizeof(Header), o.done = sizeof(Header);
  }
  const std::uint64_t n = std::min(room, whole - o.done);
  const char* const data = o.is_short ? o.copy.data() : o.data;
  each_run(ring, at, n, o.done - sizeof(Header), o.header.bytes,
           [&](char* in_ring, std::uint64_t offset, std::uint64_t count) { copy_bytes(in_ring, data + offset, count); });
  o.done += n;
  line.produced.store(at + n, std::memory_order_release);
  return o.done == whole;
}

SKEIN_INLINE bool SharedLinks::pull(int from) {
  Incoming& in = from_[static_cast<std::size_t>(from)];
  LinkLine& line = segment_.link(from, rank_);
  bool moved = false;
  while (true) {
    std::uint64_t at = line.consumed.load(std::memory_order_relaxed);
    std::uint64_t there = line.produced.load(std::memory_order_acquire) - at;
    const Ring ring = segment_.ring(from, rank_);
    if (!in.within) {
      if (there < sizeof(Header) || !wants(from)) return moved;
      std::memcpy(&in.header, ring.data + at % ring.bytes, sizeof(Header));
      begin(in, from);
      at += sizeof(Header), there -= sizeof(Header);
      moved = true;
    }
    const std::uint64_t n = std::min(there, in.header.in_ring() - in.done);
    char* const into = in.aside ? in.kept.data.data() : pool_[in.transfer].data;
    const std::uint64_t fits = in.aside ? in.header.bytes : std::min<std::uint64_t>(in.header.bytes, pool_[in.transfer].bytes);
    each_run(ring, at, n, in.done - sizeof(Header), fits,
             [&](const char* in_ring, std::uint64_t offset, std::uint64_t count) { copy_bytes(into + offset, in_ring, count); });
    in.done += n;
    line.consumed.store(at + n, std::memory_order_release);
    moved = moved || n > 0;
    if (in.done < in.header.in_ring()) return moved;
    end(in);
  }
}

SKEIN_INLINE bool SharedLinks::waits_for(OfRank<bool> takes) const {
  for (std::size_t r = 0; r < to_.size(); ++r)
    if (!to_[r].empty() && takes(static_cast<int>(r))) return true;
  return false;
}

SKEIN_INLINE bool SharedLinks::wants(int from) const {
  for (const Transfer& t : pool_)
    if (t.is_open() && t.takes(from)) return true;
  return false;
}

SKEIN_INLINE void SharedLinks::begin(Incoming& in, int from) {
  in.within = true;
  in.done = sizeof(Header);
  Transfer* const t = receiver_of(pool_, from, in.header.tag);
  in.aside = t == nullptr;
  if (t) {
    t->matched = true;
    t->peer = from;
    in.transfer = static_cast<std::size_t>(t - pool_.data());
  } else {
    in.kept = {from, in.header.tag, std::vector<char>(in.header.bytes)};
  }
}

SKEIN_INLINE void SharedLinks::end(Incoming& in) {
  in.within = false;
  if (!in.aside) return complete(pool_[in.transfer], in.header.bytes);
  aside_.push_back(std::move(in.kept));
  if (Transfer* const t = receiver_of(pool_, aside_.back().from, aside_.back().tag)) take_aside(*t);
}

SKEIN_INLINE void SharedLinks::take_aside(Transfer& t) {
  for (auto a = aside_.begin(); a != aside_.end(); ++a) {
    if (a->tag != t.tag || (t.peer >= 0 && t.peer != a->from)) continue;
    copy_bytes(t.data, a->data.data(), std::min(a->data.size(), t.bytes));
    t.peer = a->from;
    complete(t, a->data.size());
    aside_.erase(a);
    return;
  }
}

SKEIN_INLINE void SharedLinks::complete(Transfer& t, std::size_t came) {
  t.came = came;
  t.complete = true;
  --posted_;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
