// SPDX-License-Identifier: Apache-2.0
// The layout of a Sequential, by value and from the requirements of its children alone: where every edge between two of them and
// its gradient lives (nn/sequential.hpp).
#pragma once
#include <array>

#include "scratch_layout.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What a Sequential knows of its I-th child. `output` is the edge behind it, `gradient` the gradient of that edge.
struct ChildPlace {
  ArenaOffsets at{};
  Extents in{};
  ActivationOffset output{}, gradient{};
  ActivationOffset again{};     // where backward makes a copy of the edge, of one that is made again
  int turn = 0;                 // alternates with every child that writes
  int source = 0;               // the child that writes this edge (itself, unless it aliases); -1: the input
  bool is_kept = false;         // the edge is in the kept arena
  bool remade = false;          // the edge is not kept: this child makes it again where backward reads it
  bool whole_gradient = false;  // its gradient is one array for all workers
  bool takes_room = false;      // MemoryRequirements::room
};

/// Where the edges of Size children lie, one behind the other.
template <int Size> class SequentialLayout {
 public:
  std::array<ChildPlace, static_cast<std::size_t>(Size)> children{};
  MemoryRequirements total{};
  int last = 0;   ///< the child whose output is the output; -1: all alias
  int first = 0;  ///< the first child that does not alias; Size: all alias

  /// The next child, of such an input.
  constexpr void add(Extents in, const MemoryRequirements& child, bool container) {
    children[static_cast<std::size_t>(count_)].in = in;
    containers_[static_cast<std::size_t>(count_)] = container;
    needs_[static_cast<std::size_t>(count_++)] = child;
  }
  /// All children are there. The smaller of both ways to give containers what they read in backward: kept, or made again.
  constexpr SequentialLayout placed() const {
    SequentialLayout kept = *this, again = *this;
    kept.place(false);
    again.place(true);
    return again.size() < kept.size() ? again : kept;
  }

 private:
  constexpr long size() const { return total.kept_activations + total.stacked; }
  constexpr ChildPlace& child(int i) { return children[static_cast<std::size_t>(i)]; }
  constexpr const ChildPlace& child(int i) const { return children[static_cast<std::size_t>(i)]; }
  constexpr const MemoryRequirements& needs(int i) const { return needs_[static_cast<std::size_t>(i)]; }

  /// Does child i make its output again where `reader` wants it in backward? Not where it makes that from such an edge itself. A
  /// container holds the array as long as all its layers run: that pays where later layers have left room.
  constexpr bool remakes(int i, int reader, bool for_containers) const {
    const MemoryRequirements& own = needs(i);
    if (own.remakes_output == Remakes::never || own.saves_output || i == last) return false;
    if (containers_[static_cast<std::size_t>(reader)] && !for_containers) return false;
    const int before = i == 0 || own.remakes_output == Remakes::from_saved ? -1 : child(i - 1).source;
    return before < 0 || !child(before).remade;
  }
  /// The child that reads edge i, past those that only rename it.
  constexpr int reader(int i) const {
    int reader = i + 1;
    while (child(reader).source == i) ++reader;
    return reader;
  }
  /// The array of edge i's gradient, one for all workers. Edges of one pitch take two of them by turns: a worker writes its own
  /// rows alone, and others have read those when the layer that divides its gradient has ended. Rows of another pitch would lie
  /// elsewhere.
  constexpr ActivationOffset whole_gradient(int i, int turn, long pitch, ArenaOffsets& at) const {
    for (int k = 0; k < i; ++k) {
      const ChildPlace& c = child(k);
      if (c.whole_gradient && c.turn == turn && c.gradient.width == pitch) return c.gradient;
    }
    const long offset = at.whole_gradient;
    at.whole_gradient += whole_line(pitch);
    return {offset, pitch};
  }

  constexpr void place(bool remade_for_containers) {
    find_kept(remade_for_containers);
    const ArenaOffsets end = place_children();
    place_scratch();
    add_up(end);
  }
  /// Who writes which edge, and which of them backward needs.
  constexpr void find_kept(bool remade_for_containers) {
    first = Size;
    for (int i = 0; i < Size; ++i) {
      child(i).source = needs(i).aliases ? (i == 0 ? -1 : child(i - 1).source) : i;
      if (!needs(i).aliases && first == Size) first = i;
    }
    last = child(Size - 1).source;

    for (int i = 0; i < Size; ++i) {
      if (needs(i).saves_output) child(i).is_kept = true;
      if (!needs(i).saves_input) continue;
      const int source = i == 0 ? -1 : child(i - 1).source;
      if (source < 0) total.saves_input = true;
      else if (remakes(source, i, remade_for_containers)) child(source).remade = true;
      else child(source).is_kept = true;
    }
  }
  /// Where each child's part of the arenas is; returns their ends.
  constexpr ArenaOffsets place_children() {
    ArenaOffsets at{};
    int turn = 0;
    for (int i = 0; i < Size; ++i) {
      ChildPlace& c = child(i);
      const long pitch = sample_pitch(needs(i).output);
      c.at = at;
      at = at + ArenaOffsets::after(needs(i));
      if (c.source != i || c.source == last) {
        c.is_kept = c.remade = false;  // no memory of its own
      } else if (c.is_kept) {
        c.output = {at.kept_activations, pitch};
        at.kept_activations += whole_line(pitch);
      }
      if (!needs(i).aliases) turn ^= 1;
      c.turn = turn;
      if (i + 1 < Size && i >= first && !needs(i + 1).aliases) {  // backward of the next child writes it
        c.whole_gradient = c.source >= 0 && needs(c.source).whole_gradient;
        if (c.whole_gradient) c.gradient = whole_gradient(i, turn, pitch, at);
      }
      total.absorb(needs(i));
    }
    return at;
  }
  /// What all of them need; `end`: of their parts of the arenas.
  constexpr void add_up(const ArenaOffsets& end) {
    for (int i = 0; i < Size; ++i) {
      const ChildPlace& c = child(i);
      const long scratch = c.at.scratch + needs(i).scratch, stacked = c.at.saved_for_backward + c.at.scratch + needs(i).stacked;
      if (scratch > total.scratch) total.scratch = scratch;
      if (stacked > total.stacked) total.stacked = stacked;
      child(i).takes_room = needs(i).room > 0;
    }
    if (first < Size) total.room = needs(first).room;
    total.output = needs(Size - 1).output;
    total.kept_activations = end.kept_activations;
    total.whole_gradients = end.whole_gradient;
    total.aliases = last < 0;
    total.in_place = runs_in_place();
    if (last >= 0) {
      total.saves_output = needs(last).saves_output;
      for (int i = last + 1; i < Size; ++i)  // an alias behind the last layer hands its saves on
        if (needs(i).saves_input) total.saves_output = true;
      total.whole_gradient = needs(last).whole_gradient;
    }
  }

  /// One layer writes the gradient of the input, and it or another one behind it, which then has run, has read that of the
  /// output.
  constexpr bool runs_in_place() const {
    if (last < 0 || sample_pitch(child(0).in) != sample_pitch(needs(last).output)) return false;
    return first < last || needs(first).in_place;
  }
  /// The edge whose gradient that of edge i may be written over, by the child behind edge i; null: it has an array of its own.
  constexpr const ChildPlace* written_over(int i) const {
    if (!needs(i + 1).in_place || child(i + 1).source == last) return nullptr;
    const ChildPlace& over = child(reader(i + 1) - 1);
    const bool as_wide = sample_pitch(needs(i + 1).output) == sample_pitch(needs(i).output);
    return as_wide && !over.whole_gradient ? &over : nullptr;
  }
  /// Edges that are not kept, copies of those that are made again, and gradients, from the last to the first. The scratch memory
  /// of a child lies behind all that live while it runs.
  constexpr void place_scratch() {
    ScratchLayout forward, backward;
    auto lift = [&](int k, const ActivationOffset& array) {
      if (array.offset + array.width > child(k).at.scratch) child(k).at.scratch = array.offset + array.width;
    };
    auto take = [&](ScratchLayout& pass, int i, int from, int to) {
      const ActivationOffset array = pass.take(sample_pitch(needs(i).output), from, to);
      for (int k = from; k <= to; ++k) lift(k, array);
      return array;
    };
    // What a child reads in backward, made again, is placed before the gradient that it reads: it is in nobody's way earlier.
    auto take_again = [&](int reads) {
      const int source = reads <= 0 ? -1 : child(reads - 1).source;
      if (source >= 0 && child(source).remade && child(source).again.width == 0)
        child(source).again = take(backward, source, reads, reads);
    };
    take_again(last);
    for (int i = Size - 2; i >= 0; --i) {
      ChildPlace& c = child(i);
      if (c.source < 0 || c.source == last) continue;
      const int reads = reader(c.source);
      forward.forget_behind(reads);
      backward.forget_behind(reads);
      const bool has_gradient = i >= first && !needs(i + 1).aliases && !c.whole_gradient;
      const ChildPlace* over = has_gradient ? written_over(i) : nullptr;
      if (over) {  // before the copy is placed, which must lie beside it
        c.gradient = over->gradient;
        backward.extend(c.gradient, over->source, c.source);
        for (int k = c.source; k <= i; ++k) lift(k, c.gradient);
      }
      take_again(c.source);
      if (c.source == i && !c.is_kept) c.output = take(forward, i, i, reads);
      if (has_gradient && !over) c.gradient = take(backward, i, c.source, i + 1);
    }
  }

  std::array<MemoryRequirements, static_cast<std::size_t>(Size)> needs_{};
  std::array<bool, static_cast<std::size_t>(Size)> containers_{};
  int count_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::nn
