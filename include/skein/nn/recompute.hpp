// SPDX-License-Identifier: Apache-2.0
// Recompute<Block>: what backward needs of a block is not kept from forward: backward runs the block's forward once more, from
// the block's input, in memory that all such blocks of a network share. Activations of a deep network then take what one block
// needs, and the inputs of all; the step takes up to one forward longer. Chen et al., "Training Deep Nets with Sublinear Memory
// Cost", 2016; in PyTorch torch.utils.checkpoint.
#pragma once
#include "../core/flag_within.hpp"
#include "node.hpp"
#include "run_guards.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The block, whose activations are made again in backward. Gradients are those of the block alone, bit by bit: random numbers
/// are those of forward, and running statistics are updated once. Names are those of the block in its place.
template <class Block> struct Recompute {
  using recomputed_block = Block;

  static constexpr MemoryRequirements analyze(Extents in) {
    const MemoryRequirements b = nn::analyze<Block>(in);
    MemoryRequirements t = b;
    t.again.activations += b.kept_activations + whole_line(sample_pitch(b.output));
    t.again.saved += b.saved_for_backward;
    t.again.bytes += b.saved_bytes;
    t.again.flops += b.flops;
    t.kept_activations = t.saved_for_backward = t.saved_bytes = 0;
    t.stacked = b.scratch;
    t.saves_input = true;
    t.saves_output = false;
    t.remakes_output = Remakes::never;
    if (t.fault == Fault::none && b.carries_state) t.fault = Fault::recomputes_state;
    return t;
  }
};

namespace detail {
/// While it lives, a run keeps what it keeps in the memory of blocks that are computed again; blocks within this one behind it.
/// Where workers share that memory, all meet here.
template <class R> class InMemoryOfAgain {
 public:
  InMemoryOfAgain(R& r, const MemoryRequirements& block)
      : run_(r), kept_(r.kept_activations), saved_(r.saved_for_backward), bytes_(r.saved_bytes), again_(r.again),
        stacked_(r.stacked) {
    if (again_.shared) r.context.worker.barrier();  // others may still be in the block that had this memory
    r.stacked = 0;
    r.kept_activations = again_.activations;
    r.saved_for_backward = again_.saved;
    r.saved_bytes = again_.bytes;
    r.again.activations += (block.kept_activations + whole_line(sample_pitch(block.output))) * r.capacity;
    r.again.saved += block.saved_for_backward * r.capacity;
    r.again.bytes += block.saved_bytes * r.capacity;
  }
  ~InMemoryOfAgain() {
    run_.kept_activations = kept_;
    run_.saved_for_backward = saved_;
    run_.saved_bytes = bytes_;
    run_.again = again_;
    run_.stacked = stacked_;
  }
  InMemoryOfAgain(const InMemoryOfAgain&) = delete;
  InMemoryOfAgain& operator=(const InMemoryOfAgain&) = delete;

 private:
  R& run_;
  decltype(R::kept_activations) kept_;
  decltype(R::saved_for_backward) saved_;
  decltype(R::saved_bytes) bytes_;
  decltype(R::again) again_;
  long stacked_;
};
}  // namespace detail

template <RecomputeLike L, class In> struct Node<L, In> {
  using Block = Node<typename L::recomputed_block, In>;
  static constexpr MemoryRequirements block = analyze<typename L::recomputed_block>(In::extents);
  static constexpr long pitch = sample_pitch(block.output);

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y) {
    const detail::InMemoryOfAgain<R> memory(r, block);
    return Block::forward(r, within(at), x, y);
  }
  template <class R>
  static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    if (!call.dx && r.frozen(at.parameter + block.stored)) return nullptr;
    const detail::InMemoryOfAgain<R> memory(r, block);
    const typename R::Activation* y = nullptr;
    {
      const skein::detail::FlagWithin again(r.context.again, true);
      y = Block::forward(r, within(at), call.x, r.save({block.kept_activations, pitch}));
    }
    [[maybe_unused]] const detail::WholeBackward<R> whole(r);  // a half left for later would find the memory of another block
    return Block::backward(r, within(at), {call.x, y, call.dy, call.dx, {}, call.dx_scratch});
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) { Block::pack_weights(r, at); }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) { Block::prepare(r, within(at)); }
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    Block::template executed_layers<F>(visit);
  }
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    Block::leaves(at, split, visit);
  }
  template <class R> static constexpr ConversionMemory conversion() { return Block::template conversion<R>(); }

 private:
  /// The block begins at the front of that memory.
  static ArenaOffsets within(ArenaOffsets at) {
    at.kept_activations = at.saved_for_backward = at.saved_bytes = 0;
    return at;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
