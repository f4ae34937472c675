// SPDX-License-Identifier: Apache-2.0
// The optimizers' passes on the GPU: one kernel over the range, 16 bytes of each array a thread, whatever the parameter groups.
// What changes from step to step (rates, corrections) is an argument that a replayed step reads anew; the gradients' factor comes
// from device memory too. The arithmetic of an element is the Cpu's reference.
//
//     p the arguments, g a gradient; i an element of the arena or of a pack, k an array of the state, s the state of an element
#pragma once
#include <string>

#include "../../core/error.hpp"
#include "../../device/cuda/arguments.hpp"
#include "../../device/cuda/launch.hpp"
#include "../optimizer.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// The range that element i belongs to; -1: none, or one that is frozen.
constexpr int range_of(const RangeFactors* ranges, int count, long i) {
  int low = 0, high = count;  // the last one that begins at or before i is below `high`
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ranges[middle].begin <= i) low = middle + 1;
    else high = middle;
  }
  const int r = low - 1;
  return r >= 0 && i < ranges[r].end && !ranges[r].frozen ? r : -1;
}

/// Elements [index Width, (index + 1) Width) of the arena, those of the pass. Packs that lie within one range go in one load and
/// store.
template <class Call, int Width> struct Update {
  using Scalar = typename Call::Scalar;
  skein::cuda::Argument<Call> argument;
  const Scalar* gradient;

  constexpr void operator()(long index) const {
    Call p = argument();
    Scalar factor = p.gradient_scale;
    if (p.scale) {
      if (p.scale->skip) return;
      factor *= static_cast<Scalar>(p.scale->factor);
    }
    const long at = (p.begin / Width + index) * Width;
    if (at >= p.begin && at + Width <= p.end) {
      const int range = p.ranges ? range_of(p.ranges, p.range_count, at) : 0;
      if (!p.ranges || (range >= 0 && at + Width <= p.ranges[range].end)) {
        if (p.ranges)
          p.rescale(static_cast<Scalar>(p.ranges[range].lr_factor), static_cast<Scalar>(p.ranges[range].decay_factor));
        return whole(p, factor, at);
      }
    }
    const long end = at + Width < p.end ? at + Width : p.end;
    for (long i = at < p.begin ? p.begin : at; i < end; ++i) one(p, factor, i);
  }

 private:
  constexpr void whole(const Call& p, Scalar factor, long at) const {
    using Values = Pack<Scalar, Width>;
    const Values g = load<Width>(gradient + at);
    Values value = load<Width>(p.parameters + at), state[Call::arrays] = {};
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) state[k] = load<Width>(p.array(k) + at);
    for (int i = 0; i < Width; ++i) {
      Scalar s[Call::arrays] = {};
      for (int k = 0; k < Call::arrays; ++k) s[k] = state[k].value[i];
      p.element(g.value[i] * factor, value.value[i], s);
      for (int k = 0; k < Call::arrays; ++k) state[k].value[i] = s[k];
    }
    store(p.parameters + at, value);
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) store(p.array(k) + at, state[k]);
  }
  constexpr void one(Call p, Scalar factor, long i) const {
    if (p.ranges) {
      const int range = range_of(p.ranges, p.range_count, i);
      if (range < 0) return;
      p.rescale(static_cast<Scalar>(p.ranges[range].lr_factor), static_cast<Scalar>(p.ranges[range].decay_factor));
    }
    Scalar s[Call::arrays] = {};
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) s[k] = p.array(k)[i];
    p.element(gradient[i] * factor, p.parameters[i], s);
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) p.array(k)[i] = s[k];
  }
};

/// The squares of Width elements, added up.
template <class Scalar, int Width> struct Squares {
  UpdateArguments<Scalar> p;
  const Scalar* gradient;

  constexpr double operator()(long index) const {
    const long at = (p.begin / Width + index) * Width;
    double sum = 0;
    if (at >= p.begin && at + Width <= p.end && !p.ranges) {
      const Pack<Scalar, Width> g = load<Width>(gradient + at);
      for (int i = 0; i < Width; ++i) sum += square(g.value[i]);
      return sum;
    }
    const long end = at + Width < p.end ? at + Width : p.end;
    for (long i = at < p.begin ? p.begin : at; i < end; ++i)
      if (!p.ranges || range_of(p.ranges, p.range_count, i) >= 0) sum += square(gradient[i]);
    return sum;
  }

 private:
  constexpr double square(Scalar g) const {
    const double v = static_cast<double>(g) * static_cast<double>(p.gradient_scale);
    return v * v;
  }
};

/// a + b of two sums of squares.
struct AddSquares {
  constexpr double operator()(double a, double b) const { return a + b; }
};
}  // namespace cuda

template <> struct OptimizerKernels<Cuda> {
  static constexpr bool takes_ranges = true;

  template <class Call> static void update(const Call& arguments) {
    using Scalar = typename Call::Scalar;
    constexpr int width = cuda::pack_width<Scalar>;
    const Scalar* gradient = only_gradient(arguments);
    bool aligned = cuda::aligned_16(arguments.parameters, gradient);
    for (int k = 0; k < Call::arrays; ++k) aligned = aligned && cuda::aligned_16(arguments.array(k));
    if (arguments.begin >= arguments.end) return;
    if (aligned)
      skein::cuda::for_each(packs<width>(arguments), cuda::Update<Call, width>{skein::cuda::argument(arguments), gradient});
    else skein::cuda::for_each(packs<1>(arguments), cuda::Update<Call, 1>{skein::cuda::argument(arguments), gradient});
  }
  template <class Scalar> static void sum_of_squares(const UpdateArguments<Scalar>& arguments, double* into) {
    constexpr int width = cuda::pack_width<Scalar>;
    const Scalar* gradient = only_gradient(arguments);
    if (cuda::aligned_16(gradient))
      skein::cuda::reduce_into(into, packs<width>(arguments), cuda::Squares<Scalar, width>{arguments, gradient},
                               cuda::AddSquares{}, 0.0);
    else
      skein::cuda::reduce_into(into, packs<1>(arguments), cuda::Squares<Scalar, 1>{arguments, gradient}, cuda::AddSquares{}, 0.0);
  }

  template <class Scalar> static void prepare_sum_of_squares(long count) {
    constexpr int width = cuda::pack_width<Scalar>;
    skein::cuda::prepare_reduce(count / width + 2, cuda::Squares<Scalar, width>{}, cuda::AddSquares{}, 0.0);
    skein::cuda::prepare_reduce(count, cuda::Squares<Scalar, 1>{}, cuda::AddSquares{}, 0.0);
  }

 private:
  template <class Scalar> static const Scalar* only_gradient(const UpdateArguments<Scalar>& arguments) {
    if (arguments.gradient_count != 1)
      throw ArgumentError(text("an optimizer's pass on Cuda takes one array of gradients, not {}: one thread drives a GPU",
                               arguments.gradient_count));
    return arguments.gradients[0];
  }
  template <int Width, class Scalar> static long packs(const UpdateArguments<Scalar>& arguments) {
    return arguments.begin < arguments.end ? (arguments.end + Width - 1) / Width - arguments.begin / Width : 0;
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
