// SPDX-License-Identifier: Apache-2.0
// Any layer on activations that are stored in another type than its parameters: ConvertedLayer<L, In> converts its samples to the
// parameters' type, runs the ordinary layer on them, and converts what it wrote; by blocks of samples, so that the converted
// ones stay in the cache. A layer that couples the batch gets all samples of the worker at once. Layers that say computes_in do
// without.
#pragma once
#include <algorithm>

#include "../ops/convert.hpp"
#include "backward_call.hpp"
#include "memory_requirements.hpp"
#include "run.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
template <class L, class Scalar, class Device, class Activation>
inline constexpr bool runs_on = std::same_as<Scalar, Activation> ||
                                (is_half<Activation> && std::same_as<Scalar, float> && computes_in<L, Device, Activation>);
}  // namespace detail

/// The frame that L gets in a run (or instead of a frame): with the run's activations, or with converted ones.
template <class L, class R> using LeafFrame =
    Frame<typename R::Scalar, typename R::Device,
          std::conditional_t<detail::runs_on<L, typename R::Scalar, typename R::Device, typename R::Activation>,
                             typename R::Activation, typename R::Scalar>>;

/// What a subtree takes beside its MemoryRequirements where activations have a type of their own.
struct ConversionMemory {
  long scalars = 0;            ///< a worker
  long sample_scalars = 0;     ///< a sample of the worker's slice: layers that couple the batch
  bool reads_weights = false;  ///< some layer reads a copy of the parameters in the activations' type
  bool passes = false;         ///< some layer that is not converted has a block of its own within backward

  constexpr ConversionMemory& operator+=(const ConversionMemory& s) {
    scalars = std::max(scalars, s.scalars);
    sample_scalars = std::max(sample_scalars, s.sample_scalars);
    reads_weights = reads_weights || s.reads_weights;
    passes = passes || s.passes;
    return *this;
  }
  /// Scalars of one worker whose slices have at most so many samples.
  constexpr long total(long samples) const { return std::max(scalars, sample_scalars * samples); }
};

/// Scalars of converted samples at a time: on the Cpu half of a second-level cache; on a device, enough to fill it.
template <class Device> inline constexpr long conversion_block = std::same_as<Device, Cpu> ? 64L * 1024 : 16L * 1024 * 1024;

/// Runs L in its own scalar where the edges around it are stored in 16 bits, a block of samples at a time.
template <class L, class In> struct ConvertedLayer {
  static constexpr LayerInfo info = L::describe(In::extents);
  static constexpr long in = sample_pitch(In::extents), out = sample_pitch(info.output);
  static constexpr long in_line = whole_line(in), out_line = whole_line(out);
  /// Scalars a sample of the larger of the two passes, backward.
  static constexpr long sample = in_line + out_line + (info.saves_input ? in_line : 0) + (info.saves_output ? out_line : 0) +
                                 (info.saved_by_backward ? whole_line(info.saved_for_backward) : 0);

  /// Samples a block.
  template <class Device> static constexpr long block() {
    const long n = conversion_block<Device> / sample;
    return n < 1 ? 1 : n < 8 ? n : n / 8 * 8;
  }
  template <class Device> static constexpr ConversionMemory needs() {
    if (info.couples_batch) return {.sample_scalars = sample};
    return {.scalars = block<Device>() * sample};
  }

  template <class R>
  static void forward(R& r, const ArenaOffsets& at, const typename R::Activation* x, typename R::Activation* y) {
    write_output(r, at, x, y, [](auto& f) { L::template forward<In>(f); });
  }
  template <class R>
  static void remake(R& r, const ArenaOffsets& at, const typename R::Activation* x, typename R::Activation* y) {
    write_output(r, at, x, y, [](auto& f) { L::template remake<In>(f); });
  }

  template <class R> static void backward(R& r, const ArenaOffsets& at, const BackwardCall<typename R::Activation>& call) {
    using Scalar = typename R::Scalar;
    using Device = typename R::Device;
    each_block(r, [&](long first, long room) {
      Scalar *wide_dx = r.conversion, *wide_dy = wide_dx + room * in_line, *next = wide_dy + room * out_line;
      auto f = r.template frame<Frame<Scalar, Device>>(at, info);
      ops::convert<Device>(wide_dy, call.dy + first * out, r.batch * out);
      f.dy = wide_dy;
      f.dx = call.dx ? wide_dx : nullptr;
      if constexpr (info.tokens > 0) {
        f.tokens += first * In::count;
      } else if constexpr (info.saves_input) {
        ops::convert<Device>(next, call.x + first * in, r.batch * in);
        f.x = next;
        next += room * in_line;
      }
      if constexpr (info.saves_output) {
        ops::convert<Device>(next, call.y + first * out, r.batch * out);
        f.y = next;
        next += room * out_line;
      }
      if constexpr (info.saved_by_backward) f.saved_for_backward = next;
      if constexpr (CollectsFactors<R>) r.template add_units<L, In>(at.parameter, f);
      L::template backward<In>(f);
      if constexpr (CollectsFactors<R>) r.template add_factors<L, In>(at.parameter, f);
      if (call.dx) ops::convert<Device>(call.dx + first * in, wide_dx, r.batch * in);
    });
  }

  /// For every number of samples that a block will have. A worker may have none.
  template <class R> static void prepare(R& r, const ArenaOffsets& at) {
    const long n = r.batch, size = info.couples_batch ? n : block<typename R::Device>();
    auto one = [&](long samples) {
      r.batch = samples;
      auto f = r.template frame<Frame<typename R::Scalar, typename R::Device>>(at, info);
      L::template prepare<In>(f);
    };
    if (n > 0 && n >= size) one(size);
    if (n > 0 && n % size > 0) one(n % size);
    r.batch = n;
  }

 private:
  /// call(frame) writes frame.y, of some samples.
  template <class R, class Call> static void write_output(R& r, const ArenaOffsets& at, const typename R::Activation* x,
                                                          typename R::Activation* y, Call&& call) {
    using Scalar = typename R::Scalar;
    using Device = typename R::Device;
    each_block(r, [&](long first, long room) {
      Scalar *wide_x = r.conversion, *wide_y = wide_x + room * in_line;
      auto f = r.template frame<Frame<Scalar, Device>>(at, info);
      if constexpr (info.tokens > 0) {
        f.tokens += first * In::count;
      } else {
        ops::convert<Device>(wide_x, x + first * in, r.batch * in);
        f.x = wide_x;
      }
      f.y = wide_y;
      call(f);
      ops::convert<Device>(y + first * out, wide_y, r.batch * out);
    });
  }
  /// call(first sample, samples that the conversion memory is divided for), with the run narrowed to the block. At least once: a
  /// layer that overwrites its gradients does so for an empty slice too, and one that couples the batch meets the other workers.
  template <class R, class Call> static void each_block(R& r, Call&& call) {
    auto& c = r.context;
    const long n = r.batch, first = c.first, size = info.couples_batch ? n : std::min(n, block<typename R::Device>());
    const auto global_first = c.global_first;
    const bool accumulate = c.accumulate;
    for (long at = 0; at < n || at == 0; at += std::max(1L, size)) {
      r.batch = std::min(size, n - at);
      c.first = first + at;
      c.global_first = global_first + static_cast<std::uint64_t>(at);
      c.accumulate = accumulate || at > 0;
      call(at, size);
    }
    r.batch = n;
    c.first = first;
    c.global_first = global_first;
    c.accumulate = accumulate;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
