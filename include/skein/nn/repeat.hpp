// SPDX-License-Identifier: Apache-2.0
// Repeat<N, Block>: N equal blocks, each with its own weights, compiled once and run by a loop. In a Sequential its blocks
// are numbered as children of that Sequential, so that names are the same with and without it.
#pragma once
#include "node.hpp"
#include "run_guards.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Block, N times, one behind the other, each with weights of its own; compiled once. Its output must have its input's
/// extents, in memory of its own: a block that hands its input on, as Identity does, is refused.
template <int N, class Block> struct Repeat {
  using block = Block;
  static constexpr int repetitions = N > 0 ? N : 1;
  static constexpr MemoryRequirements analyze(Extents in) {
    constexpr int n = repetitions;
    const MemoryRequirements b = nn::analyze<Block>(in);
    MemoryRequirements t = b;
    for (int k = 1; k < n; ++k) t.absorb(b);
    t.whole_gradients = b.whole_gradients;  // the blocks use the same, one after the other
    const long edge = whole_line(sample_pitch(in));
    t.kept_activations = n * b.kept_activations + (n - 1) * edge;
    const long own = gradients(b) * edge;
    t.scratch = own + b.scratch;
    t.stacked = (n - 1) * b.saved_for_backward + own + b.stacked;
    t.in_place = n > 1 || b.in_place;
    if (b.in_place && n > 1) t.room = edge + b.room;
    t.aliases = t.whole_gradient = false;
    t.remakes_output = Remakes::never;
    if (t.fault == Fault::none && (b.aliases || !(b.output == in))) t.fault = Fault::repeat_changes_shape;
    if (N < 1) t.fault = Fault::repeats_nothing;
    return t;
  }
  /// Arrays that the gradients of the edges take by turns; none where a block writes over the gradient that it reads: all are in
  /// that of the input then.
  static constexpr int gradients(const MemoryRequirements& block) {
    return block.in_place ? 0 : repetitions < 3 ? repetitions - 1 : 2;
  }
};

template <RepeatLike L, class In> struct Node<L, In> {
  using Block = Node<typename L::block, In>;
  static constexpr int n = L::repetitions;
  static constexpr MemoryRequirements block = analyze<typename L::block>(In::extents);
  static constexpr long pitch = sample_pitch(In::extents), edge_line = whole_line(pitch);
  static constexpr long stride = block.kept_activations + edge_line;  // [block 0][edge 0][block 1] ...

  /// From a block to the next one.
  static constexpr ArenaOffsets step() {
    ArenaOffsets s = ArenaOffsets::after(block);
    s.kept_activations = stride;
    s.whole_gradient = 0;
    return s;
  }
  static constexpr ArenaOffsets at_block(const ArenaOffsets& at, long k) {
    ArenaOffsets a = at.moved(step(), k);
    a.scratch += L::gradients(block) * edge_line;
    return a;
  }
  template <class R> static typename R::Activation* edge(const R& r, const ArenaOffsets& at, long k) {
    return r.save({at.kept_activations + k * stride + block.kept_activations, pitch});
  }

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    for (long k = 0; k < n; ++k) x = Block::forward(r, at_block(at, k), x, k + 1 == n ? y : edge(r, at, k));
    return x;
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    detail::NoSplit<R> guard(r);
    const typename R::Activation* dy = call.dy;
    for (long k = n - 1; k >= 0; --k) {
      const ArenaOffsets here = at_block(at, k);
      const PartBackward part = r.backward_of(here.parameter, here.parameter + block.stored, k > 0 || call.dx, block.room > 0);
      if (!part.runs) return nullptr;
      auto* const to = edge_gradient(r, at, k, call.array_of_dx());
      const auto *x = k == 0 ? call.x : edge(r, at, k - 1), *y = k + 1 == n ? call.y : edge(r, at, k);
      dy = Block::backward(r, here, {x, y, dy, part.wants_dx ? to : nullptr, {}, part.takes_scratch ? to : nullptr});
    }
    return dy;
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    for (long k = 0; k < n; ++k) Block::pack_weights(r, at_block(at, k));
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) { Block::prepare(r, at_block(at, 0)); }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    for (long k = 0; k < n; ++k) Block::template executed_layers<F>(visit);
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool, Visit&& visit) {
    for (long k = 0; k < n; ++k) Block::leaves(at_block(at, k), false, visit);
  }
  template <class R> static constexpr ConversionMemory conversion() { return Block::template conversion<R>(); }

 private:
  /// The array of the gradient that block k writes: the first dx, which is that of the whole, or as large, or null.
  template <class R>
  static typename R::Activation* edge_gradient(const R& r, const ArenaOffsets& at, long k, typename R::Activation* dx) {
    if (k == 0) return dx;
    if constexpr (block.in_place) return dx ? dx : r.temporary({at.scratch + block.scratch + block.room, edge_line});
    else return r.temporary({at.scratch + (k - 1) % 2 * edge_line, edge_line});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
