// SPDX-License-Identifier: Apache-2.0
// What a subtree of a network needs, added up by value: analyze<L>(extents). Containers have their own analyze(); leaves
// describe themselves. Constexpr calls are not memoised, so nothing here is called twice a level.
#pragma once
#include <span>

#include "layer_spec.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A number of bytes, rounded up to whole cache lines.
constexpr long whole_line_bytes(long bytes) { return (bytes + 63) / 64 * 64; }

/// Memory that the blocks of Recompute share, a sample: the largest block's (with those within it); and the flops of forward that
/// backward makes once more, those of all.
struct AgainRequirements {
  long activations = 0, saved = 0, bytes = 0;  // edges; scalars and bytes of layers' own blocks
  long flops = 0;

  constexpr void absorb(const AgainRequirements& s) {
    activations = s.activations > activations ? s.activations : activations;
    saved = s.saved > saved ? s.saved : saved;
    bytes = s.bytes > bytes ? s.bytes : bytes;
    flops += s.flops;
  }
};

/// What a network or a part of it needs for an input: output, parameters, scalars of each arena, and what it counts.
struct MemoryRequirements {
  Extents output{};
  long parameters = 0;                                                     ///< logical
  long stored = 0, buffers = 0, packed_weights = 0, batch_statistics = 0;  // scalars
  long kept_activations = 0, scratch = 0;  // edges, activations a sample: kept for backward, or reused; sums of whole lines
  long whole_gradients = 0;                // gradients that layers read as one array over all workers, likewise
  long saved_for_backward = 0, backward_scratch = 0;  // layers' own blocks, scalars a sample: until backward, or within it
  long saved_bytes = 0;                               // a sample
  /// saved_for_backward and scratch where they share one memory: what a layer saves lies in front of what those before it have
  /// saved, and its scratch lies at the other end, in the room that is not yet, or no longer, saved in. At most their sum.
  long stacked = 0;
  /// Scratch behind its own, where it is given no array for the gradient of its input. Who has such an array gives it,
  /// where nobody wants that gradient, as BackwardCall::dx_scratch.
  long room = 0;
  long workspace = 0;  // scalars a worker
  long flops = 0;
  int layer_nodes = 0, entries = 0, buffer_entries = 0, paths = 1;
  bool saves_input = false, saves_output = false;
  Remakes remakes_output = Remakes::never;  // else its output need not be kept
  bool aliases = false, couples_batch = false;
  bool in_place = false;        // backward may write the gradient of the input over that of the output
  bool whole_gradient = false;  // backward wants dy as one array over all workers (splits_gradients)
  bool carries_state = false;   // of some layer, from one batch to the next
  int tokens = 0;               // not 0: the input is integers below this number
  AgainRequirements again{};
  Fault fault = Fault::none;

  constexpr void absorb(const MemoryRequirements& s) {  // what does not depend on the order
    parameters += s.parameters;
    stored += s.stored;
    buffers += s.buffers;
    packed_weights += s.packed_weights;
    batch_statistics += s.batch_statistics;
    whole_gradients += s.whole_gradients;
    saved_for_backward += s.saved_for_backward;
    backward_scratch += s.backward_scratch;
    saved_bytes += s.saved_bytes;
    flops += s.flops;
    layer_nodes += s.layer_nodes;
    entries += s.entries;
    buffer_entries += s.buffer_entries;
    paths += s.paths;
    if (s.workspace > workspace) workspace = s.workspace;
    couples_batch = couples_batch || s.couples_batch;
    carries_state = carries_state || s.carries_state;
    again.absorb(s.again);
    if (s.tokens > 0 && (tokens == 0 || s.tokens < tokens)) tokens = s.tokens;
    if (fault == Fault::none) fault = s.fault;
  }
};

/// What a child needs that may be given no array for the gradient of its input: its `room` becomes scratch.
constexpr MemoryRequirements with_room(MemoryRequirements s) {
  if (s.room == 0) return s;
  s.scratch += s.room;
  s.stacked = s.saved_for_backward + s.scratch;  // it lives as long as all that the child consists of
  s.room = 0;
  return s;
}

/// L consists of other layers and sums up what they need.
template <class L> concept Container = requires(Extents in) {
  { L::analyze(in) } -> std::same_as<MemoryRequirements>;
};
template <class L> concept SequentialLike = requires { typename L::children; };
/// L has a body and a shortcut whose outputs are added.
template <class L> concept ResidualLike = requires {
  typename L::body;
  typename L::shortcut;
};
/// L is ResidualLike with a ReLU behind the sum: made by a rewriting (nn/fused/rectified_residual.hpp).
template <class L> concept RectifiedResidualLike = requires {
  typename L::rectified_body;
  typename L::rectified_shortcut;
};
template <class L> concept ConcatLike = requires { typename L::branches; };
/// L is one block, several times.
template <class L> concept RepeatLike = requires {
  typename L::block;
  L::repetitions;
};
/// L is one block, whose activations backward makes again.
template <class L> concept RecomputeLike = requires { typename L::recomputed_block; };
template <class L> concept GraphLike = requires { typename L::graph_items; };
/// The extents of the Inputs of a Graph whose sample is a row of several; of any other network none.
template <class L> constexpr std::span<const Extents> input_parts() {
  if constexpr (GraphLike<L>) return L::input_parts;
  else return {};
}

namespace detail {
/// How many of the user's layers a (possibly fused) layer stands for.
template <class L> constexpr int layer_count_of() {
  if constexpr (requires { L::layer_count; }) return L::layer_count;
  else return 1;
}
}  // namespace detail

/// A rewriting has put L on another device than the host.
template <class L> concept RunsOnDevice = requires { typename L::kernel_device; };

/// A layer that makes copies of its weights says how much they take.
template <class L> inline constexpr bool says_what_it_packs = HasNeeds<L> || !HasPackWeights<L>;

/// What the kernels of a layer want: those of the host, or of the device that a rewriting has put it on (nn/fused_network.hpp).
template <class L> constexpr KernelNeeds needs_of(Extents in) {
  if constexpr (HasNeeds<L> && RunsOnDevice<L>) return L::template needs<typename L::kernel_device>(in);
  else if constexpr (HasNeeds<L>) return L::template needs<Cpu>(in);
  else return {};
}

namespace detail {
template <class L> constexpr Fault fault_of_leaf(Extents in, const LayerInfo& i) {
  constexpr bool merges_names = layer_count_of<L>() > 1;  // a fused layer has the parameters of its parts
  return !has_forward<L>                    ? Fault::no_forward
         : !has_backward<L>                 ? Fault::no_backward
         : !says_what_it_packs<L>           ? Fault::no_needs
         : in.tokens && i.tokens < 1        ? Fault::wants_numbers
         : !in.tokens && i.tokens > 0       ? Fault::wants_tokens
         : i.fault != Fault::none           ? i.fault
         : i.output.rank < 1                ? Fault::describes_no_output
         : merges_names || i.names_differ() ? Fault::none
                                            : Fault::parameter_names;
}
}  // namespace detail

/// What L needs for such an input. By value: a fault inside is in the result, not an error.
template <class L> constexpr MemoryRequirements analyze(Extents in) {
  if constexpr (Container<L>) {
    return L::analyze(in);
  } else if constexpr (HasDescribe<L> || HasSpec<L>) {
    const LayerInfo i = info_of<L>(in);
    MemoryRequirements s{
        .output = i.output, .parameters = i.parameter_count(), .stored = i.stored_parameters(), .buffers = i.stored_buffers()};
    const KernelNeeds k = needs_of<L>(in);
    s.packed_weights = whole_line(k.packed_weights);
    s.batch_statistics = whole_line(i.batch_statistics);
    (i.saved_by_backward ? s.backward_scratch : s.saved_for_backward) = whole_line(i.saved_for_backward);
    s.saved_bytes = whole_line_bytes(i.saved_bytes);
    s.stacked = s.saved_for_backward;
    s.workspace = k.workspace;
    s.flops = i.flops;
    s.layer_nodes = s.paths = detail::layer_count_of<L>();
    s.entries = i.entries();
    s.buffer_entries = i.buffer_entries();
    s.saves_input = i.saves_input;
    s.saves_output = i.saves_output;
    s.remakes_output = i.remakes_output;
    s.aliases = i.aliases_input;
    s.couples_batch = i.couples_batch;
    s.carries_state = i.carries_state;
    s.whole_gradient = k.splits_gradients;
    s.tokens = i.tokens;
    s.fault = detail::fault_of_leaf<L>(in, i);
    return s;
  } else {
    return {.output = in, .layer_nodes = 1, .fault = Fault::no_describe};
  }
}

/// The run-time position of a node in the arenas.
struct ArenaOffsets {
  long parameter = 0, buffer = 0, packed_weights = 0, batch_statistics = 0, kept_activations = 0, saved_for_backward = 0,
       backward_scratch = 0, saved_bytes = 0, scratch = 0, whole_gradient = 0;
  int ordinal = 0;

  /// The place that is so many steps further on.
  constexpr ArenaOffsets moved(const ArenaOffsets& step, long times) const {
    return {.parameter = parameter + times * step.parameter,
            .buffer = buffer + times * step.buffer,
            .packed_weights = packed_weights + times * step.packed_weights,
            .batch_statistics = batch_statistics + times * step.batch_statistics,
            .kept_activations = kept_activations + times * step.kept_activations,
            .saved_for_backward = saved_for_backward + times * step.saved_for_backward,
            .backward_scratch = backward_scratch + times * step.backward_scratch,
            .saved_bytes = saved_bytes + times * step.saved_bytes,
            .scratch = scratch + times * step.scratch,
            .whole_gradient = whole_gradient + times * step.whole_gradient,
            .ordinal = ordinal + static_cast<int>(times) * step.ordinal};
  }
  friend constexpr ArenaOffsets operator+(const ArenaOffsets& a, const ArenaOffsets& b) { return a.moved(b, 1); }
  /// Where the next sibling starts, but for the edges between siblings and scratch, which the container places.
  static constexpr ArenaOffsets after(const MemoryRequirements& s) {
    return {.parameter = s.stored,
            .buffer = s.buffers,
            .packed_weights = s.packed_weights,
            .batch_statistics = s.batch_statistics,
            .kept_activations = s.kept_activations,
            .saved_for_backward = s.saved_for_backward,
            .backward_scratch = s.backward_scratch,
            .saved_bytes = s.saved_bytes,
            .whole_gradient = s.whole_gradients,
            .ordinal = s.layer_nodes};
  }
};

/// An edge: a per-sample array of activations in the kept or the scratch arena. `width` is what one sample takes there. A kept
/// array is one for all workers. Scratch memory is divided among the workers first, since arrays of other widths take each
/// other's places in it, and a worker may be some layers ahead of another.
struct ActivationOffset {
  long offset = 0, width = 0;
};

}  // namespace skein::inline SKEIN_ABI::nn
