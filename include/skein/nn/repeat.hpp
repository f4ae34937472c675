// SPDX-License-Identifier: Apache-2.0
// Repeat<N, Block>: N equal blocks, each with its own weights, compiled once and run by a loop. In a Sequential its blocks
// are numbered as children of that Sequential, so that names are the same with and without it.
#pragma once
#include "node.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <int N, class Block> struct Repeat {
  using block = Block;
  static constexpr int repetitions = N > 0 ? N : 1;
  static constexpr Sizes measure(Extents in) {
    constexpr int n = repetitions;
    const Sizes b = nn::measure<Block>(in);
    Sizes t = b;
    t.parameters *= n;
    t.stored *= n;
    t.buffers *= n;
    t.derived *= n;
    t.shared *= n;
    t.saved *= n;
    t.passing *= n;
    t.saved_bytes *= n;
    t.flops *= n;
    t.operations *= n;
    t.entries *= n;
    t.buffer_entries *= n;
    t.paths *= n;
    const long edge = whole_line(sample_pitch(in));
    t.kept = n * b.kept + (n - 1) * edge;
    t.scratch = 2 * edge + b.scratch;
    t.aliases = t.whole_gradient = false;
    if (t.fault == Fault::none && (b.aliases || !(b.output == in))) t.fault = Fault::repeat_changes_shape;
    if (N < 1) t.fault = Fault::repeats_nothing;
    return t;
  }
};

template <RepeatLike L, class In> struct Node<L, In> {
  using Block = Node<typename L::block, In>;
  static constexpr int n = L::repetitions;
  static constexpr Sizes block = measure<typename L::block>(In::extents);
  static constexpr long pitch = sample_pitch(In::extents), edge_line = whole_line(pitch);
  static constexpr long stride = block.kept + edge_line;  // [block 0][edge 0][block 1] ...

  static At at_block(const At& at, long k) {
    At a = at;
    a.parameter += k * block.stored;
    a.buffer += k * block.buffers;
    a.derived += k * block.derived;
    a.shared += k * block.shared;
    a.kept += k * stride;
    a.saved += k * block.saved;
    a.passing += k * block.passing;
    a.saved_bytes += k * block.saved_bytes;
    a.scratch += 2 * edge_line;
    a.ordinal += static_cast<int>(k) * block.operations;
    return a;
  }
  template <class R> static typename R::Activation* edge(const R& r, const At& at, long k) {
    return r.save({at.kept + k * stride + block.kept, pitch});
  }

  template <class R>
  static const typename R::Activation* forward(R& r, const At& at, const typename R::Activation* x, typename R::Activation* y) {
    for (long k = 0; k < n; ++k) x = Block::forward(r, at_block(at, k), x, k + 1 == n ? y : edge(r, at, k));
    return x;
  }
  template <class R> static const typename R::Activation* backward(R& r, const At& at, const typename R::Activation* x,
                                                                   const typename R::Activation* y,
                                                                   const typename R::Activation* dy, typename R::Activation* dx) {
    detail::NoSplit<R> guard(r);
    for (long k = n - 1; k >= 0; --k) {
      typename R::Activation* to = k == 0 ? dx : r.temporary({at.scratch + (k & 1) * edge_line, edge_line});
      dy = Block::backward(r, at_block(at, k), k == 0 ? x : edge(r, at, k - 1), k + 1 == n ? y : edge(r, at, k), dy, to);
    }
    return dy;
  }
  template <class R> static void derive(R& r, const At& at) {
    for (long k = 0; k < n; ++k) Block::derive(r, at_block(at, k));
  }
  template <class R> static void prepare(R& r, const At& at) { Block::prepare(r, at_block(at, 0)); }
  template <class F, class Visit> static constexpr void units(Visit&& visit) {
    for (long k = 0; k < n; ++k) Block::template units<F>(visit);
  }
  template <class Visit> static constexpr void leaves(const At& at, bool, Visit&& visit) {
    for (long k = 0; k < n; ++k) {
      At a = at;
      a.parameter += k * block.stored;
      Block::leaves(a, false, visit);
    }
  }
  template <class R> static constexpr Staging staging() { return Block::template staging<R>(); }
};

}  // namespace skein::inline SKEIN_ABI::nn
