// SPDX-License-Identifier: Apache-2.0
// The bodies of shared_transport.hpp.
#pragma once
#include "shared_transport.hpp"

#include <limits>
#include <utility>

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SharedTransport::SharedTransport(const Segment& segment, int rank, RankNames ranks, std::uint64_t chunks, bool asks)
    : segment_(segment), names_(std::move(ranks)), rank_(rank), ranks_(names_.size()), asks_(asks), pointers_(ranks_),
      line_(segment.line(rank)), base_(chunks) {}

SKEIN_INLINE void SharedTransport::add(const std::shared_ptr<NodePages>& pages) {
  std::size_t i = 0;
  while (i < shared_.size() && !shared_[i].pages.expired()) ++i;
  if (i == shared_.size()) shared_.emplace_back();
  shared_[i].pages = pages, shared_[i].begin = std::exchange(shared_end_, shared_end_ + pages->stride());
}

SKEIN_INLINE std::uint64_t SharedTransport::shared_at(const CollectiveCall& o) const {
  const std::size_t bytes = o.bytes(o.signature.count);
  if (o.signature.kind != Collective::AllReduce || bytes <= one_phase_bytes || o.send != o.recv) return 0;
  for (const Shared& s : shared_)
    if (const auto pages = s.pages.lock(); pages && pages->holds(o.recv, bytes))
      return s.begin + static_cast<std::uint64_t>(o.into() - pages->own());
  return 0;
}

SKEIN_INLINE void SharedTransport::withdraw() {
  for (const Shared& s : shared_)
    if (const auto pages = s.pages.lock()) pages->withdraw();
}

SKEIN_INLINE void SharedTransport::find_pages() {
  pages_ = nullptr;
  const std::uint64_t at = o_->signature.shared_at;
  if (at == 0) return;
  for (const Shared& s : shared_)
    if (const auto pages = s.pages.lock(); pages && at >= s.begin && at - s.begin < pages->stride())
      pages_ = pages.get(), offset_ = static_cast<std::size_t>(at - s.begin);
  if (!pages_) throw CommError("all_reduce: the shared pages of its span were released before the call was done");
}

SKEIN_INLINE void SharedTransport::begin(const CollectiveCall& o, std::uint64_t call) {
  o_ = &o;
  call_ = call;
  base_ += static_cast<std::uint64_t>(chunks_.count);
  own_ = {};
  if (call > 0 && segment_.signature(rank_, call - 1).kind == Collective::Broadcast) ++broadcasts_;
  compared_ = false;
  const Signature& s = o.signature;
  const std::size_t slot = segment_.slot_bytes(), bytes = o.bytes(s.count);
  const bool reduces = s.kind == Collective::AllReduce || s.kind == Collective::Reduce;
  chunks_.folds = reduces && bytes > one_phase_bytes;
  unit_ = reduces || s.kind == Collective::ReduceScatter ? s.element : 1;
  const std::size_t most = o.bytes(o.largest_piece(ranks_)) / unit_;
  per_chunk_ = slot / unit_;
  find_pages();
  chunks_.in_place = pages_ != nullptr;
  if (pages_) per_chunk_ = s.count;
  if (s.kind == Collective::ReduceScatter || s.kind == Collective::AllToAll) {
    sub_slot_ = slot / static_cast<std::size_t>(ranks_) / 64 * 64;
    per_chunk_ = sub_slot_ / unit_;
  }
  const std::size_t chunks = most == 0 || s.kind == Collective::Barrier ? 1 : (most + per_chunk_ - 1) / per_chunk_;
  const std::size_t grain = std::max<std::size_t>(1, 64 / unit_);
  if (chunks > 1) per_chunk_ = std::min(per_chunk_, ((most + chunks - 1) / chunks + grain - 1) / grain * grain);
  chunks_.count = static_cast<std::int64_t>(chunks);
  chunks_.depth = static_cast<std::int64_t>(written_back() ? Segment::folding_depth : segment_.depth());
  segment_.signature(rank_, call_) = s;
  // A call that folds nothing brings the counter along, before its In is seen: counters are compared by their difference, and
  // one that stayed behind by 2^31 chunks would count as ahead.
  if (!chunks_.folds) line_.counter[Folded].store(number(chunks_.count), std::memory_order_relaxed);
}

SKEIN_INLINE bool SharedTransport::step() {
  need_ = {};
  const ChunkStep next = next_step(chunks_, own_, look());
  if (next == ChunkStep::wait) return need_ = lacking(), false;
  if (next != ChunkStep::fill) compare();
  if (next == ChunkStep::take) take(own_.taken++);
  else if (next == ChunkStep::fold) fold_slice(own_.folded++);
  else fill(own_.in++);
  const int which = next == ChunkStep::take ? Taken : next == ChunkStep::fold ? Folded : In;
  const std::int64_t done = next == ChunkStep::take ? own_.taken : next == ChunkStep::fold ? own_.folded : own_.in;
  publish(line_, which, number(done), Reach::Machine);
  return true;
}

SKEIN_INLINE bool SharedTransport::lacks(int r) const {
  if (!need_.line || (r == rank_)) return false;
  if (o_->signature.kind == Collective::Broadcast && need_.which == In && r != o_->signature.root) return false;
  return !Need{&segment_.line(r), need_.which, need_.value}.met();
}

SKEIN_INLINE std::string SharedTransport::missing_text(double seconds) const {
  const bool any_absent = !some_ranks_text(names_, [&](int r) { return lacks(r) && !has_begun(r); }).empty();
  const auto missing = [&](int r) { return lacks(r) && (!any_absent || !has_begun(r)); };
  const std::string who = some_ranks_text(names_, missing), within = " within " + seconds_text(seconds);
  if (who.empty()) return "";
  return call_text(who, any_absent) +
         (any_absent ? " did not arrive" + within
                     : " arrived but made no progress" + within + ": what is started has to be polled or waited for");
}

SKEIN_INLINE std::string SharedTransport::call_text(const std::string& who, bool absent) const {
  const std::string before = absent ? not_called_text(o_->signature, who) : "";
  return text("{}{} (call {}): {}", before, describe(o_->signature, names_), call_, who);
}

SKEIN_INLINE std::string SharedTransport::departed_text(OfRank<bool> has_left) const {
  const std::string who = some_ranks_text(names_, [&](int r) { return r != rank_ && has_left(r) && lacks(r); });
  return who.empty() ? "" : call_text(who, true) + " returned and will not arrive";
}

SKEIN_INLINE ChunkCounts SharedTransport::look() const {
  constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
  const bool broadcasts = o_->signature.kind == Collective::Broadcast;
  ChunkCounts least{all, all, all};
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    const auto count = [&](int which) {
      const std::uint32_t have = segment_.line(r).counter[which].load(std::memory_order_acquire);
      return std::int64_t{static_cast<std::int32_t>(have - number(0))};
    };
    if (!broadcasts || r == o_->signature.root) least.in = std::min(least.in, count(In));
    least.folded = std::min(least.folded, count(Folded));
    least.taken = std::min(least.taken, count(Taken));
  }
  return least;
}

SKEIN_INLINE Need SharedTransport::lacking() const {
  const ChunkStep awaited = awaited_step(chunks_, own_);
  Need need{.which = Taken, .value = number(own_.in + 1 - chunks_.depth)};
  if (awaited == ChunkStep::take) need = {.which = chunks_.folds ? Folded : In, .value = number(own_.taken + 1)};
  if (awaited == ChunkStep::fold) need = {.which = In, .value = number(own_.folded + 1)};
  const bool of_root = o_->signature.kind == Collective::Broadcast && need.which == In;
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_ || (of_root && r != o_->signature.root)) continue;
    need.line = &segment_.line(r);
    if (!need.met()) break;
  }
  return need;
}

SKEIN_INLINE void SharedTransport::compare() {
  if (compared_) return;
  compared_ = true;
  const auto of = [&](int r) -> const Signature& { return segment_.signature(r, call_); };
  const Signature& own = o_->signature;
  if (own.kind == Collective::Broadcast) {
    if (rank_ == own.root || of(own.root) == own) return;
    throw CommError(mismatch_text(call_, names_, {{own.root, of(own.root)}, {rank_, own}}));
  }
  // A broadcast waits for its root alone, and a root for nobody: two ranks that each were the root of one are found now. Nobody
  // is so far ahead that its signature has been overwritten.
  for (std::uint64_t back = std::min<std::uint64_t>(std::exchange(broadcasts_, 0), 16) + 1; back-- > 0;) {
    const auto then = [&](int r) -> const Signature& { return segment_.signature(r, call_ - back); };
    for (int r = 0; r < ranks_; ++r)
      if (!(then(r) == then(rank_))) throw CommError(mismatch_text(call_ - back, names_, then));
  }
}

SKEIN_INLINE Piece SharedTransport::part(Piece whole, std::int64_t i) const {
  const std::size_t count = o_->bytes(whole.count) / unit_, begin = std::min(count, static_cast<std::size_t>(i) * per_chunk_),
                    end = std::min(count, begin + per_chunk_);
  return {o_->bytes(whole.offset) / unit_ + begin, end - begin};
}

SKEIN_INLINE void SharedTransport::fill(std::int64_t i) {
  if (pages_) return;
  const CollectiveCall& o = *o_;
  switch (o.signature.kind) {
    case Collective::Barrier:
      break;
    case Collective::Broadcast:
      if (rank_ != o.signature.root) break;
      [[fallthrough]];
    case Collective::AllReduce:
    case Collective::Reduce: {
      const Piece c = part({0, o.signature.count}, i);
      const char* from = o.from() + bytes(c.offset);
      const Piece own = chunks_.folds ? slice(c, rank_) : Piece{c.count, 0};
      const std::size_t after = own.offset + own.count;
      copy_bytes(slot(rank_, i), from, bytes(own.offset));
      copy_bytes(slot(rank_, i) + bytes(after), from + bytes(after), bytes(c.count - after));
      break;
    }
    case Collective::AllGather: {
      const Piece c = part({0, o.piece(rank_).count}, i);
      copy_bytes(slot(rank_, i), o.from() + bytes(c.offset), bytes(c.count));
      break;
    }
    case Collective::ReduceScatter:
    case Collective::AllToAll:
      for (int q = 0; q < ranks_; ++q) {
        const Piece c = part(o.piece(q), i);
        if (q != rank_) copy_bytes(sub_slot(rank_, q, i), o.from() + bytes(c.offset), bytes(c.count));
      }
      break;
  }
}

SKEIN_INLINE void SharedTransport::fold_slice(std::int64_t i) {
  const CollectiveCall& o = *o_;
  const Piece c = part({0, o.signature.count}, i), own = slice(c, rank_);
  if (own.count == 0) return;
  const std::size_t user = o.bytes(c.offset + own.offset), inside = o.bytes(own.offset);
  const bool to_all = o.signature.kind == Collective::AllReduce;
  std::size_t targets = 0;
  for (int r = 0; r < ranks_; ++r) {
    pointers_.from[static_cast<std::size_t>(r)] = r == rank_ ? o.from() + user : operand(r, i, user, inside);
    if (r != rank_ && (to_all || r == o.signature.root)) pointers_.to[targets++] = operand(r, i, user, inside);
  }
  if (receives()) pointers_.to[targets++] = o.into() + user;
  const std::size_t block = asks_ ? std::max<std::size_t>(1, asked_bytes / o.signature.element) : own.count;
  for (std::size_t at = 0, n = 0; at < own.count; at += n) {
    n = std::min(block, own.count - at);
    if (asks_)
      for (int r = 0; r < ranks_; ++r)
        if (r != rank_) take_lines(operand(r, i, user, inside) + o.bytes(at), o.bytes(n));
    o.fold(o.functor, pointers_.to.data(), static_cast<int>(targets), pointers_.from.data(), ranks_, n);
    for (const void*& p : pointers_.from) p = static_cast<const char*>(p) + o.bytes(n);
    for (std::size_t t = 0; t < targets; ++t) pointers_.to[t] = static_cast<char*>(pointers_.to[t]) + o.bytes(n);
  }
}

SKEIN_INLINE void SharedTransport::take_sums(char* to, const char* from, std::size_t bytes) {
  const std::size_t block = asks_ ? asked_bytes : bytes;
  for (std::size_t at = 0, n = 0; at < bytes; at += n) {
    n = std::min(block, bytes - at);
    if (asks_) take_lines(from + at, n);
    copy_bytes(to + at, from + at, n);
  }
}

SKEIN_INLINE void SharedTransport::take_reduced(const CollectiveCall& o, std::int64_t i) {
  const Piece c = part({0, o.signature.count}, i);
  if (!receives() || c.count == 0) return;
  char* into = o.into() + bytes(c.offset);
  if (chunks_.folds) {  // the other ranks' slices are folded
    const Piece own = slice(c, rank_);
    const std::size_t after = own.offset + own.count;
    take_sums(into, slot(rank_, i), bytes(own.offset));
    return take_sums(into + bytes(after), slot(rank_, i) + bytes(after), bytes(c.count - after));
  }
  for (int r = 0; r < ranks_; ++r)
    pointers_.from[static_cast<std::size_t>(r)] = r == rank_ ? o.from() + bytes(c.offset) : slot(r, i);
  pointers_.to[0] = into;
  if (ranks_ == 2) pointers_.to[1] = slot(1 - rank_, i);  // nobody else reads it: it goes back written
  o.fold(o.functor, pointers_.to.data(), ranks_ == 2 ? 2 : 1, pointers_.from.data(), ranks_, c.count);
}

SKEIN_INLINE void SharedTransport::take_scattered(const CollectiveCall& o, std::int64_t i) {
  const Piece c = part(o.piece(rank_), i), own = part({0, o.piece(rank_).count}, i);
  for (int r = 0; r < ranks_; ++r)
    pointers_.from[static_cast<std::size_t>(r)] = r == rank_ ? o.from() + bytes(c.offset) : sub_slot(r, rank_, i);
  for (int r = 0; r < ranks_; ++r)  // what nobody else reads goes back written
    pointers_.to[static_cast<std::size_t>(r)] = r == rank_ ? o.into() + bytes(own.offset) : sub_slot(r, rank_, i);
  if (c.count) o.fold(o.functor, pointers_.to.data(), ranks_, pointers_.from.data(), ranks_, c.count);
}

SKEIN_INLINE void SharedTransport::take(std::int64_t i) {
  if (pages_) return;
  const CollectiveCall& o = *o_;
  switch (o.signature.kind) {
    case Collective::Barrier:
      break;
    case Collective::Broadcast:
      if (const Piece c = part({0, o.signature.count}, i); rank_ != o.signature.root)
        copy_bytes(o.into() + bytes(c.offset), slot(o.signature.root, i), bytes(c.count));
      break;
    case Collective::AllReduce:
    case Collective::Reduce:
      return take_reduced(o, i);
    case Collective::AllGather:
      for (int r = 0; r < ranks_; ++r) {
        const Piece c = part(o.piece(r), i), own = part({0, o.piece(r).count}, i);
        copy_bytes(o.into() + bytes(c.offset), r == rank_ ? o.from() + bytes(own.offset) : slot(r, i), bytes(c.count));
      }
      break;
    case Collective::ReduceScatter:
      return take_scattered(o, i);
    case Collective::AllToAll:
      for (int r = 0; r < ranks_; ++r) {
        const Piece c = part(o.piece(r), i), own = part(o.piece(rank_), i);
        copy_bytes(o.into() + bytes(c.offset), r == rank_ ? o.from() + bytes(own.offset) : sub_slot(r, rank_, i), bytes(c.count));
      }
      break;
  }
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
