// SPDX-License-Identifier: Apache-2.0
// Execution: Run is one worker's pass over the arenas; Node<L, In> runs layer L at input shape In. There is one Node for each
// distinct pair, whatever its place; offsets come as a value (At). Containers specialise Node in their own headers.
#pragma once
#include "converted_layer.hpp"
#include "expression_layer.hpp"
#include "write_check.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Where blocks whose activations are made again keep them: see nn/recompute.hpp.
template <class Scalar, class Activation> struct AgainMemory {
  Activation* activations = nullptr;
  Scalar* saved = nullptr;
  std::byte* bytes = nullptr;
  bool shared = false;  ///< by workers, whose parts of it lie otherwise in each block
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
  void ready(long begin, long end) const {
    if (context.ready_hook) context.ready_hook(context.hook, context, begin, end);
  }
};

/// A run that may leave the parameters' gradients of a layer for later: see StageRun.
template <class R> concept Defers = requires(R& r, const typename R::Activation* dy) {
  { r.defers(dy, true) } -> std::same_as<bool>;
};

/// A run that wants second moments of what goes through a layer: see KroneckerRun (nn/kronecker.hpp).
template <class R> concept CollectsFactors = requires(R& r) { r.sums_at(0L); };
/// L has Kronecker factors.
template <class L, class In, class F, class Sums> concept HasKroneckerFactors = requires(const F& f, const Sums& sums) {
  L::template kronecker_factors<In>(f, sums);
};
/// The curvature of L's scale and shift is taken unit-wise.
template <class L, class In, class F> concept HasUnitGradient = requires(F& f) { L::template unit_gradient<In>(f); };

/// What a residual block asks of the ends of its body in backward: the last layer's Frame::dsum, the first one's Frame::adds_dx.
template <class Activation> struct BodyEnds {
  Activation* dsum = nullptr;
  bool adds_dx = false;
};
/// The last layer of a node joins a sum (JoinsSum), or its first one adds to the gradient of the input (AddsToGradient).
template <class N, class R> concept NodeJoinsSum = requires { requires N::template joins_sum<R>; };
template <class N, class R> concept NodeAddsToGradient = requires { requires N::template adds_dx<R>; };

/// A leaf. forward returns where the output is (an aliasing layer: its input); backward likewise for the input's gradient.
template <class L, class In> struct Node {
  static constexpr LayerInfo info = L::describe(In::extents);
  static constexpr bool splits = needs_of<L>(In::extents).splits_gradients;
  template <class R> static constexpr bool takes = std::same_as<typename LeafFrame<L, R>::Activation, typename R::Activation>;
  template <class R> static constexpr bool joins_sum = takes<R>&& JoinsSum<L>;
  template <class R> static constexpr bool adds_dx = takes<R>&& AddsToGradient<L, In, LeafFrame<L, R>>;

  template <class R> static const typename R::Activation* forward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                  typename R::Activation* y,
                                                                  const typename R::Activation* addend = nullptr) {
    if constexpr (info.aliases_input) {
      return x;
    } else if constexpr (!takes<R>) {
      ConvertedLayer<L, In>::forward(r, at, x, y);
      return y;
    } else {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      share_gradient(r, at, f);
      f.x = x;
      f.y = y;
      f.addend = addend;
      const auto written = watch<R>(y, r.batch, info.output);
      L::template forward<In>(f);
      written.assert_written("forward", "its output", "f.y() = ...");
      return y;
    }
  }
  template <class R> static const typename R::Activation* backward(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                                   const typename R::Activation* y,
                                                                   const typename R::Activation* dy, typename R::Activation* dx,
                                                                   const BodyEnds<typename R::Activation>& ends = {}) {
    if constexpr (info.aliases_input) {
      return dy;
    } else {
      if (!dx && r.frozen(at.parameter + info.stored_parameters())) return nullptr;
      if constexpr (!takes<R>) {
        ConvertedLayer<L, In>::backward(r, at, x, y, dy, dx);
      } else {
        auto f = r.template frame<LeafFrame<L, R>>(at, info);
        share_gradient(r, at, f);
        f.x = x;
        f.y = const_cast<typename R::Activation*>(y);
        f.dy = dy;
        f.dx = dx;
        f.dsum = ends.dsum;
        f.adds_dx = ends.adds_dx;
        if constexpr (CollectsFactors<R>) add_units(r, at, f);
        const auto written = watch<R>(info.tokens > 0 || ends.adds_dx ? nullptr : dx, r.batch, In::extents);
        if constexpr (Defers<R> && HasBackwardHalves<L>) {
          if (r.defers(dy, info.saved_by_backward)) {
            L::template backward_input<In>(f);
            written.assert_written("backward", "the gradient of its input", "f.dx() = ...");
            r.defer(&Node::template backward_parameters<R>, at, x, y, dy);
            return dx;
          }
        }
        L::template backward<In>(f);
        written.assert_written("backward", "the gradient of its input", "f.dx() = ...");
        if constexpr (CollectsFactors<R>) add_factors(r, at, f);
      }
      if constexpr (info.stored_parameters() > 0) r.ready(at.parameter, at.parameter + info.stored_parameters());
      return dx;
    }
  }
  /// The half that a backward before has left for later.
  template <class R> static void backward_parameters(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                     const typename R::Activation* y, const typename R::Activation* dy) {
    auto f = r.template frame<LeafFrame<L, R>>(at, info);
    share_gradient(r, at, f);
    f.x = x;
    f.y = const_cast<typename R::Activation*>(y);
    f.dy = dy;
    L::template backward_parameters<In>(f);
  }
  /// Writes its output of training once more, of a layer that says remakes_output: the same bits.
  template <class R> static void remake(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                        typename R::Activation* y) requires(info.remakes_output != Remakes::never) {
    if constexpr (!takes<R>) {
      ConvertedLayer<L, In>::remake(r, at, x, y);
    } else {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      f.x = x;
      f.y = y;
      L::template remake<In>(f);
    }
  }
  template <class R> static void pack_weights(R& r, const ArenaOffsets& at) {
    if constexpr (HasPackWeights<L>) {
      auto f = r.template frame<LeafFrame<L, R>>(at, info);
      share_gradient(r, at, f);
      L::template pack_weights<In>(f);
    }
  }
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    if constexpr (HasPrepare<L>) {
      if constexpr (!takes<R>) {
        ConvertedLayer<L, In>::prepare(r, at);
      } else {
        auto f = r.template frame<LeafFrame<L, R>>(at, info);
        share_gradient(r, at, f);
        L::template prepare<In>(f);
      }
    }
  }
  /// Calls visit(number of the user's layers, which kernel runs them) for each executed layer, in order.
  template <class F, class Visit> static constexpr void executed_layers(Visit&& visit) {
    if constexpr (requires { L::template kernel<In, LeafFrame<L, F>>(); })
      visit(detail::layer_count_of<L>(), std::string_view(L::template kernel<In, LeafFrame<L, F>>()));
    else visit(detail::layer_count_of<L>(), std::string_view(info.aliases_input ? "no copy" : ""));
  }
  /// Calls visit(layer's info, stored parameter offset, may its gradient be split among workers) for each leaf, in order.
  template <class Visit> static constexpr void leaves(const ArenaOffsets& at, bool split, Visit&& visit) {
    visit(info, at.parameter, split && splits);
  }
  /// What running this subtree on other activations than its scalars takes.
  template <class R> static constexpr ConversionMemory conversion() {
    if constexpr (info.aliases_input) return {};
    else if constexpr (takes<R>) return {.reads_weights = info.stored_parameters() > 0, .passes = info.saved_by_backward};
    else return ConvertedLayer<L, In>::template needs<typename R::Device>();
  }

 private:
  template <class R, class F> static void add_factors(R& r, const ArenaOffsets& at, const F& f) {
    if constexpr (HasKroneckerFactors<L, In, F, decltype(r.sums_at(0L))>)
      if (info.curvature[0].a > 0 && r.collects) L::template kronecker_factors<In>(f, r.sums_at(at.parameter));
  }
  /// Before backward, which may write over what the layer has saved.
  template <class R, class F> static void add_units(R& r, const ArenaOffsets& at, const F& f) {
    if constexpr (HasUnitGradient<L, In, F>) {
      constexpr long begin = info.curvature[info.curvature[0].unit_wise ? 0 : 1].begin;
      if (!r.collects) return;
      if (const auto sums = r.sums_at(at.parameter + begin); sums.place) sums.template units<L, In>(f);
    }
  }
  /// The rank's one gradient where the workers divide it.
  template <class R, class F> static void share_gradient(R& r, const ArenaOffsets& at, F& f) {
    if constexpr (splits)
      if (r.context.split) f.gradients = r.split_gradients + at.parameter;
  }
  /// Samples that the layer is about to write.
  template <class R, class T> static auto watch(T* to, long batch, const Extents& sample) {
    if constexpr (checks_writes<R>) return detail::WriteCheck<L, T>(to, batch, sample);
    else return detail::NoWriteCheck{};
  }
};

/// A leaf of tensor expressions.
template <HasSpec L, class In> struct Node<L, In> : Node<ExpressionLayer<L>, In> {};

namespace detail {
/// Inside Residual, Concat and Repeat gradients lie in each worker's part of the scratch memory, as inputs do that a Sequential
/// makes again, so that no array there is whole for all workers: layers do not split gradients there.
template <class R> class NoSplit {
 public:
  explicit NoSplit(R& r) : run_(r), before_(r.context.split) { r.context.split = false; }
  ~NoSplit() { run_.context.split = before_; }
  NoSplit(const NoSplit&) = delete;
  NoSplit& operator=(const NoSplit&) = delete;

 private:
  R& run_;
  bool before_;
};
/// Sets a flag while it lives.
class FlagWithin {
 public:
  FlagWithin(bool& flag, bool value) : flag_(flag), before_(flag) { flag = value; }
  ~FlagWithin() { flag_ = before_; }
  FlagWithin(const FlagWithin&) = delete;
  FlagWithin& operator=(const FlagWithin&) = delete;

 private:
  bool& flag_;
  bool before_;
};
/// While it lives, no layer leaves a half of its backward for later.
template <class R> struct WholeBackward {
  explicit WholeBackward(R&) {}
};
template <Defers R> struct WholeBackward<R> : FlagWithin {
  explicit WholeBackward(R& r) : FlagWithin(r.halves, false) {}
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
