// SPDX-License-Identifier: Apache-2.0
// What a subtree of a network needs, added up by value: measure<L>(extents). Containers have their own measure(); leaves
// describe themselves. Constexpr calls are not memoised, so nothing here is called twice a level.
#pragma once
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Offsets of per-sample arrays are kept at multiples of a cache line.
constexpr long whole_line(long scalars) { return (scalars + 15) / 16 * 16; }
constexpr long whole_line_bytes(long bytes) { return (bytes + 63) / 64 * 64; }

struct Sizes {
  Extents output{};
  long parameters = 0;                                    ///< logical
  long stored = 0, buffers = 0, derived = 0, shared = 0;  // scalars
  long kept = 0, scratch = 0;   // edges, activations a sample: kept for backward, or reused; sums of whole lines
  long saved = 0, passing = 0;  // layers' own blocks, scalars a sample: until backward, or within it
  long saved_bytes = 0;         // a sample
  long workspace = 0;           // scalars a worker
  long flops = 0;
  int operations = 0, entries = 0, buffer_entries = 0, paths = 1;
  bool saves_input = false, saves_output = false;
  bool aliases = false, couples_batch = false;
  bool whole_gradient = false;  // backward wants dy as one array over all workers (splits_gradients)
  Fault fault = Fault::none;

  constexpr void absorb(const Sizes& s) {  // what does not depend on the order
    parameters += s.parameters;
    stored += s.stored;
    buffers += s.buffers;
    derived += s.derived;
    shared += s.shared;
    saved += s.saved;
    passing += s.passing;
    saved_bytes += s.saved_bytes;
    flops += s.flops;
    operations += s.operations;
    entries += s.entries;
    buffer_entries += s.buffer_entries;
    paths += s.paths;
    if (s.workspace > workspace) workspace = s.workspace;
    couples_batch = couples_batch || s.couples_batch;
    if (fault == Fault::none) fault = s.fault;
  }
};

template <class L> concept Container = requires(Extents in) {
  { L::measure(in) } -> std::same_as<Sizes>;
};
template <class L> concept SequentialLike = requires { typename L::children; };
template <class L> concept ResidualLike = requires {
  typename L::body;
  typename L::shortcut;
};
template <class L> concept ConcatLike = requires { typename L::branches; };
template <class L> concept RepeatLike = requires {
  typename L::block;
  L::repetitions;
};

namespace detail {
/// How many of the user's layers a (possibly fused) layer stands for.
template <class L> constexpr int parts_of() {
  if constexpr (requires { L::parts; }) return L::parts;
  else return 1;
}
}  // namespace detail

template <class L> constexpr Sizes measure(Extents in) {
  if constexpr (Container<L>) {
    return L::measure(in);
  } else if constexpr (HasDescribe<L>) {
    const LayerInfo i = L::describe(in);
    Sizes s{
        .output = i.output, .parameters = i.parameter_count(), .stored = i.stored_parameters(), .buffers = i.stored_buffers()};
    s.derived = whole_line(i.derived);
    s.shared = whole_line(i.shared);
    (i.saved_by_backward ? s.passing : s.saved) = whole_line(i.saved);
    s.saved_bytes = whole_line_bytes(i.saved_bytes);
    s.workspace = i.workspace;
    s.flops = i.flops;
    s.operations = s.paths = detail::parts_of<L>();
    s.entries = i.entries();
    s.buffer_entries = i.buffer_entries();
    s.saves_input = i.saves_input;
    s.saves_output = i.saves_output;
    s.aliases = i.aliases_input;
    s.couples_batch = i.couples_batch;
    s.whole_gradient = i.splits_gradients;
    s.fault = !HasForward<L> ? Fault::no_forward : !HasBackward<L> ? Fault::no_backward : i.fault;
    return s;
  } else {
    return {.output = in, .operations = 1, .fault = Fault::no_describe};
  }
}

/// The run-time position of a node in the arenas.
struct At {
  long parameter = 0, buffer = 0, derived = 0, shared = 0, kept = 0, saved = 0, passing = 0, saved_bytes = 0, scratch = 0;
  int ordinal = 0;

  friend constexpr At operator+(const At& a, const At& b) {
    return {a.parameter + b.parameter, a.buffer + b.buffer,  a.derived + b.derived, a.shared + b.shared,
            a.kept + b.kept,           a.saved + b.saved,    a.passing + b.passing, a.saved_bytes + b.saved_bytes,
            a.scratch + b.scratch,     a.ordinal + b.ordinal};
  }
  /// Where the next sibling starts, but for the edges between siblings and scratch, which the container places.
  static constexpr At after(const Sizes& s) {
    return {s.stored, s.buffers, s.derived, s.shared, s.kept, s.saved, s.passing, s.saved_bytes, 0, s.operations};
  }
};

/// An edge: a per-sample array of activations in the kept or the scratch arena. `width` is what one sample takes there: a
/// worker's slice begins at first * width, so that workers never meet even where edges of other pitches reuse the array.
struct Slot {
  long offset = 0, width = 0;
};

}  // namespace skein::inline SKEIN_ABI::nn
