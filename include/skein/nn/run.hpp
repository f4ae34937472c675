// SPDX-License-Identifier: Apache-2.0
// Run: one worker's pass over the arenas of a network, from which each leaf gets its frame. A pipeline's stage
// (nn/exec/stage_run.hpp) and K-FAC (nn/kronecker.hpp) derive from it; the nodes of a network (nn/node.hpp) take whichever there
// is.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Where blocks whose activations are made again keep them: see nn/recompute.hpp.
template <class Scalar, class Activation> struct AgainMemory {
  Activation* activations = nullptr;
  Scalar* saved = nullptr;
  std::byte* bytes = nullptr;
  bool shared = false;  ///< by workers, whose parts of it lie otherwise in each block
};

/// What backward does in a part of a network: see Run::backward_of.
struct PartBackward {
  bool runs = false;           ///< false: neither the gradient of its input is wanted, nor those of its parameters
  bool wants_dx = false;       ///< it makes the gradient of its input
  bool takes_scratch = false;  ///< it does not, and uses the array that the gradient would be in
};

/// One worker's pass: base pointers of the arenas and the slice of the batch that it works on. Edges between layers are
/// Activation, all else is Scalar.
template <class Scalar_, class Device_, class Activation_ = Scalar_> struct Run : detail::CastWeights<Scalar_, Activation_> {
  using Scalar = Scalar_;
  using Device = Device_;
  using Activation = Activation_;
  const std::int32_t* tokens = nullptr;  // of this slice, where the network takes such
  const Scalar* parameters = nullptr;
  Scalar* gradients = nullptr;        // this worker's
  Scalar* split_gradients = nullptr;  // of the rank, where a layer divides one gradient among the workers
  Scalar* buffers = nullptr;
  Scalar* packed_weights = nullptr;
  Scalar* batch_statistics = nullptr;
  Activation* kept_activations = nullptr;
  Scalar *saved_for_backward = nullptr, *backward_scratch = nullptr;
  std::byte* saved_bytes = nullptr;
  AgainMemory<Scalar_, Activation_> again{};
  Activation *scratch = nullptr, *whole_gradients = nullptr;
  long scratch_width = 0;        // what a sample takes of the scratch memory
  long stacked = 0;              // not 0: saved_for_backward is the scratch memory, and a sample takes so much of it
  Scalar* workspace = nullptr;   // this worker's
  Scalar* conversion = nullptr;  // this worker's, see nn/converted_layer.hpp
  long capacity = 0;             // samples that every per-sample array has room for
  long batch = 0;                // samples of this slice
  long first_trained = 0;        // parameters before this offset are frozen: backward makes no gradient of them
  bool input_gradient = false;   // somebody wants that of the whole network's input
  Context<Scalar, Device> context{};

  Activation* save(ActivationOffset s) const { return kept_activations + s.offset * capacity + context.first * s.width; }
  /// In this worker's part of the scratch memory.
  Activation* temporary(ActivationOffset s) const { return scratch + context.first * scratch_width + s.offset * batch; }
  /// One array for all workers, which nothing else uses.
  Activation* whole_gradient(ActivationOffset s) const { return whole_gradients + s.offset * capacity + context.first * s.width; }

  /// What a layer saves, in this worker's part of the memory that it shares with scratch: from its end to the front.
  Scalar* saved_in_stack(long offset, long saved) const {
    return saved_for_backward + context.first * stacked + (stacked - offset - whole_line(saved)) * batch;
  }
  /// Null stays null: an arena that a run does not need is not there.
  template <class T> static SKEIN_ALWAYS_INLINE T* place(T* arena, std::ptrdiff_t offset) {
    return arena ? arena + offset : arena;
  }
  /// A leaf's frame, but for its samples. F: Frame<Scalar, Device>, or
  /// with Activation for a leaf that takes it.
  template <class F> F frame(const ArenaOffsets& at, const LayerInfo& info) const {
    F f;
    f.parameters = parameters + at.parameter;
    if constexpr (!std::same_as<typename F::Activation, Scalar>) f.weights = this->weights + at.parameter;
    f.gradients = place(gradients, at.parameter);
    f.buffers = place(buffers, at.buffer);
    f.packed_weights = place(packed_weights, at.packed_weights);
    const auto saved = context.first * info.saved_for_backward;
    f.saved_for_backward = info.saved_by_backward ? place(backward_scratch, at.backward_scratch * capacity + saved)
                           : stacked > 0          ? saved_in_stack(at.saved_for_backward, info.saved_for_backward)
                                                  : place(saved_for_backward, at.saved_for_backward * capacity + saved);
    f.saved_bytes = place(saved_bytes, at.saved_bytes * capacity + context.first * info.saved_bytes);
    f.batch_statistics = place(batch_statistics, at.batch_statistics);
    f.workspace = workspace;
    if (info.tokens > 0) f.tokens = tokens;
    f.batch = batch;
    f.ordinal = at.ordinal;
    f.context = &context;
    return f;
  }
  /// Parameters that end there or before are frozen, all of them: nobody reads what backward would make from there on.
  bool frozen(long end) const { return end <= first_trained; }
  /// Somebody wants the gradient of an edge whose layer's parameters begin there.
  bool wants_gradient(long begin) const { return input_gradient || !frozen(begin); }
  /// What backward does in a part with the parameters [begin, end), whose caller takes the gradient of its input, or does not.
  /// takes_room: of the part (MemoryRequirements::room).
  PartBackward backward_of(long begin, long end, bool taken, bool takes_room) const {
    const bool wanted = taken && wants_gradient(begin);
    return {wanted || !frozen(end), wanted, takes_room && !wanted};
  }
  /// Backward has made this worker's gradients from there to the end of the arena.
  void gradients_final_from(long begin) const {
    if (context.ready_hook) context.ready_hook(context.hook, context, begin);
  }
};

/// A run that may leave the parameters' gradients of a layer for later: see StageRun.
template <class R> concept Defers = requires(R& r, const typename R::Activation* dy) {
  { r.defers(dy, true) } -> std::same_as<bool>;
};

/// A run that wants second moments of what goes through a layer: see KroneckerRun.
template <class R> concept CollectsFactors = requires { requires R::collects_factors; };

}  // namespace skein::inline SKEIN_ABI::nn
