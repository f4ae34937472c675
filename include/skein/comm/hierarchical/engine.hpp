// SPDX-License-Identifier: Apache-2.0
// The engine of Hierarchical: a collective is up to three collectives of the levels, in the node, between nodes, and in the node
// again. Several are in flight at once; each level sees them in their order, since going up and coming down have a communicator
// each.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/flag_within.hpp"
#include "../call_ring.hpp"
#include "../collective_call.hpp"
#include "../progress.hpp"
#include "../request.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Where a rank stands: node `node` of `nodes`, place `place` of `places` in it.
struct Levels {
  int node = 0, nodes = 1, place = 0, places = 1;
  bool leaders = false;  ///< only place 0 of a node talks to other nodes; else each place with the same places of theirs
  bool outside() const { return !leaders || place == 0; }
  int rank() const { return node * places + place; }
};

/// The engine of one rank of Hierarchical: a collective is one inside the node, one between nodes, and one inside again.
template <class Inside, class Between> class HierarchicalEngine final : Progress {
 public:
  /// Engines of the node (two, over the same ranks) and between nodes (nullptr where this rank is no leader).
  HierarchicalEngine(Levels levels, Inside& up, Between* between, Inside& down)
      : levels_(levels), up_(&up), between_(between), down_(&down) {}
  ~HierarchicalEngine() { leave_thread(); }

  const Levels& levels() const { return levels_; }

  void run(const CollectiveCall& o) {
    Ticket t = start(o);
    wait(t);
  }
  Ticket start(const CollectiveCall& o) {
    called();
    if (calls_.full()) or_abandon([&] { wait_until(calls_.complete() + 1); });
    Call& call = calls_.next();
    call.stage = 0;
    call.going = false;
    call.whole = o;
    plan(call, o);
    const Ticket t{calls_.push(), -1, -1};
    or_abandon([&] { advance(); });
    return t;
  }
  bool test(Ticket& t) {
    progress();
    const bool done = calls_.complete() >= t.number;
    if (!done) move_others(this);
    return done;
  }
  void wait(Ticket& t) {
    called();
    or_abandon([&] { wait_until(t.number); });
  }
  void progress() {
    called();
    or_abandon([&] { advance(); });
  }
  void abandon() {
    up_->abandon();
    if (between_) between_->abandon();
    down_->abandon();
  }

 private:
  bool under_way() const override { return !calls_.empty() && !within_ && !failed_; }
  bool move_on() override {
    const std::uint64_t complete = calls_.complete();
    or_abandon([&] { advance(); });
    return calls_.complete() > complete;
  }
  /// Where one level fails, the others hear of it.
  template <class F> void or_abandon(const F& f) {
    try {
      f();
    } catch (...) {
      failed_ = true;
      abandon();
      throw;
    }
  }

  struct Call {
    std::array<std::optional<CollectiveCall>, 3> stages;  // in the node, between, in the node
    std::vector<std::size_t> counts, blocks;              // pieces of the node's ranks; of the nodes
    CollectiveCall whole;
    int stage = 0;
    bool going = false;
    Ticket ticket{};
  };

  // ---- what the levels do for one call
  void plan(Call& c, const CollectiveCall& o) {
    for (auto& s : c.stages) s.reset();
    switch (o.signature.kind) {
      case Collective::Barrier:
        c.stages[0] = o;
        if (levels_.outside()) c.stages[1] = o;
        c.stages[2] = o;
        break;
      case Collective::Broadcast:
        plan_broadcast(c, o);
        break;
      case Collective::AllReduce:
        plan_all_reduce(c, o);
        break;
      case Collective::AllGather:
        plan_all_gather(c, o);
        break;
      default:
        throw ArgumentError("Hierarchical: there is no " + std::string(collective_names[static_cast<int>(o.signature.kind)]));
    }
  }
  void plan_broadcast(Call& c, const CollectiveCall& o) {
    const int node = o.signature.root / levels_.places, place = o.signature.root % levels_.places;
    if (levels_.leaders && place != 0 && levels_.node == node) c.stages[0] = with_root(o, place);  // to the leader first
    const int carrier = levels_.leaders ? 0 : place;
    if (levels_.place == carrier) c.stages[1] = with_root(o, node);
    c.stages[2] = with_root(o, carrier);
  }
  /// Leaders: all to the first of the node, sums between those, and back. Else each rank sums a slice of the node's values, and
  /// that with the same slice of other nodes. Of a Mean the levels add: it is finished once, of all ranks, at the end.
  void plan_all_reduce(Call& c, const CollectiveCall& o) {
    CollectiveCall all = o;
    all.signature.kind = Collective::AllReduce;
    all.signature.root = 0;
    if (o.finish) all.signature.reduction = reduction_code<Sum>();
    all.fold = o.pair;
    all.finish = nullptr;
    if (levels_.places == 1) {
      c.stages[1] = all;
      return;
    }
    if (levels_.leaders) {
      c.stages[0] = all;
      c.stages[0]->signature.kind = Collective::Reduce;
      if (levels_.place == 0) c.stages[1] = all;
      c.stages[2] = with_root(all, 0);
      c.stages[2]->signature.kind = Collective::Broadcast;
      c.stages[2]->signature.reduction = 0;
      c.stages[2]->fold = nullptr;
      return;
    }
    c.counts.resize(static_cast<std::size_t>(levels_.places));
    for (int r = 0; r < levels_.places; ++r)
      c.counts[static_cast<std::size_t>(r)] = slice_of(o.signature.count, o.signature.element, r, levels_.places).count;
    const Piece own = slice_of(o.signature.count, o.signature.element, levels_.place, levels_.places);
    char* at = o.into() + o.bytes(own.offset);
    CollectiveCall scatter = pieces(all, Collective::ReduceScatter, c.counts, o.signature.count);
    scatter.recv = at;
    c.stages[0] = scatter;
    CollectiveCall slice = all;
    slice.signature.count = own.count;
    slice.send = slice.recv = at;
    c.stages[1] = slice;
    CollectiveCall gather = pieces(all, Collective::AllGather, c.counts, o.signature.count);
    gather.signature.reduction = 0;
    gather.fold = nullptr;
    gather.send = at;
    c.stages[2] = gather;
  }
  /// The node's ranks first, in their place of the whole, then nodes as blocks.
  void plan_all_gather(Call& c, const CollectiveCall& o) {
    const int n = levels_.nodes, p = levels_.places;
    c.counts.resize(static_cast<std::size_t>(p));
    c.blocks.assign(static_cast<std::size_t>(n), 0);
    std::size_t whole = 0, mine = 0;
    for (int r = 0; r < n * p; ++r) {
      const std::size_t count = o.piece(r).count;
      if (r == levels_.node * p) mine = whole;
      whole += count;
      c.blocks[static_cast<std::size_t>(r / p)] += count;
      if (r / p == levels_.node) c.counts[static_cast<std::size_t>(r % p)] = count;
    }
    const std::size_t block = c.blocks[static_cast<std::size_t>(levels_.node)];
    CollectiveCall inside = pieces(o, Collective::AllGather, c.counts, block);
    inside.recv = o.into() + o.bytes(mine);
    c.stages[0] = inside;
    if (levels_.outside()) {
      CollectiveCall between = pieces(o, Collective::AllGather, c.blocks, whole);
      between.send = inside.recv;
      c.stages[1] = between;
    }
    if (levels_.leaders && p > 1) {
      CollectiveCall back = o;
      back.signature.kind = Collective::Broadcast;
      back.signature.root = 0;
      back.signature.count = whole;
      back.signature.counts_hash = 0;
      back.counts = nullptr;
      back.send = back.recv = o.recv;
      c.stages[2] = back;
    }
  }
  static CollectiveCall with_root(CollectiveCall o, int root) {
    o.signature.root = root;
    return o;
  }
  static CollectiveCall pieces(CollectiveCall o, Collective kind, const std::vector<std::size_t>& counts, std::size_t whole) {
    o.signature.kind = kind;
    o.signature.root = 0;
    o.signature.count = whole;
    o.signature.counts_hash = hash_bytes(counts.data(), counts.size() * sizeof(std::size_t));
    o.counts = counts.data();
    return o;
  }

  // ---- the calls in flight
  bool over(Ticket& t, int stage) { return stage == 1 ? between_->test(t) : (stage == 0 ? up_ : down_)->test(t); }
  /// Not while another engine waits, where the level's calls wait for other ranks.
  bool may_begin(int stage) const { return !moving() || !(stage == 1 ? starts_by_waiting<Between> : starts_by_waiting<Inside>); }
  void begin(Call& c) {
    const CollectiveCall& o = *c.stages[static_cast<std::size_t>(c.stage)];
    c.ticket = c.stage == 1 ? between_->start(o) : (c.stage == 0 ? up_ : down_)->start(o);
    c.going = true;
  }
  /// One call as far as it goes; a stage begins only when all calls before it have begun theirs.
  void advance(Call& c, int& limit) {
    for (; c.stage < 3; ++c.stage, c.going = false) {
      if (c.stage > limit) return;
      if (!c.stages[static_cast<std::size_t>(c.stage)]) continue;
      if (!c.going && !may_begin(c.stage)) break;
      if (!c.going) begin(c);
      if (!over(c.ticket, c.stage)) break;
    }
    if (c.stage < limit) limit = c.stage;
  }
  void advance() {
    const skein::detail::FlagWithin within(within_, true);
    int limit = 2;
    for (std::uint64_t n = calls_.complete(); n < calls_.started(); ++n) advance(calls_[n], limit);
    for (; !calls_.empty() && calls_.oldest().stage == 3; calls_.pop())
      if (const CollectiveCall& o = calls_.oldest().whole; o.finish)
        o.finish(o.recv, o.signature.count, levels_.nodes * levels_.places);
  }
  void wait_until(std::uint64_t number) {
    while (true) {
      advance();
      if (calls_.complete() >= number) return;
      const skein::detail::FlagWithin within(within_, true);
      Call& c = calls_.oldest();  // the first may always begin its stages
      if (c.stage == 1) between_->wait(c.ticket);
      else (c.stage == 0 ? up_ : down_)->wait(c.ticket);
      c.going = false;
      ++c.stage;
    }
  }

  Levels levels_;
  Inside* up_;
  Between* between_;
  Inside* down_;
  CallRing<Call> calls_;
  bool within_ = false;  // its own work: where an engine that it is made of waits, this one is not moved
  bool failed_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm
