// SPDX-License-Identifier: Apache-2.0
// The factor of a step's gradients where the host does not know it: made on the device of the sums over all ranks, the gradient's
// norm and the loss scale, and read there by the optimizer's pass. Also the small passes over those sums. The interfaces are
// device-neutral; where the host reads memory directly (Cpu) they are the same few lines.
#pragma once
#include <cmath>

#include "for_each.hpp"
#include "step_values.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What the optimizer's pass reads: the gradient counts `factor` times; where `skip` is not 0 the pass changes nothing.
struct StepScale {
  double factor = 1;
  int skip = 0;
  double norm = 0;  ///< of the scaled gradient, before it was clipped; 0 where nobody asked
};

/// What the factor is made of. Pointers are the device's; `scale` is written.
template <class Scalar> struct StepScaleCall {
  const Scalar* tail = nullptr;        ///< loss, weight, correct: summed over all ranks
  double expected_weight = 1;          ///< the policy's gradient factor times what the gradients were divided by
  const StepValues* values = nullptr;  ///< its loss_scale is divided out; null: 1
  const double* squares = nullptr;     ///< sum of the squares of the unscaled gradients; null: no clipping, no skipping
  bool may_skip = false;               ///< squares that are not finite skip the step; else the gradient is as it is
  double clip_norm = 0;                ///< the greatest norm that is left alone; 0: no clipping
  StepScale* scale = nullptr;

  /// Squares that are not finite, as an overflow anywhere makes them, leave the factor alone.
  SKEIN_HOST_DEVICE void operator()(long) const {
    StepScale s;
    const double weight = static_cast<double>(tail[1]), loss_scale = values ? values->loss_scale : 1.0;
    s.factor = weight > 0 ? expected_weight / (weight * loss_scale) : 0.0;
    if (squares) {
      const double sum = *squares;
      const bool finite = sum - sum == 0.0;
      s.skip = may_skip && !finite;
      if (!s.skip) s.norm = std::sqrt(sum) * s.factor;
      if (finite && clip_norm > 0 && s.norm + 1e-6 > clip_norm) s.factor *= clip_norm / (s.norm + 1e-6);
    }
    *scale = s;
  }
};

/// Copies sums (loss, weight, correct in double) to the tail of a gradient arena, which the ranks add up.
template <class Scalar> struct WriteSums {
  const double* sums = nullptr;
  Scalar* tail = nullptr;
  SKEIN_HOST_DEVICE void operator()(long i) const { tail[i] = static_cast<Scalar>(sums[i]); }
};

/// totals += tail: an epoch's sums, which the host reads when it wants them.
template <class Scalar> struct AddTail {
  const Scalar* tail = nullptr;
  double* totals = nullptr;
  SKEIN_HOST_DEVICE void operator()(long i) const { totals[i] += static_cast<double>(tail[i]); }
};

/// Makes *call.scale. Nothing waits.
template <class Device, class Scalar> void step_scale(const StepScaleCall<Scalar>& call) { for_each<Device>(1, call); }
/// tail[0..2] = sums[0..2].
template <class Device, class Scalar> void write_sums(const double* sums, Scalar* tail) {
  for_each<Device>(3, WriteSums<Scalar>{sums, tail});
}
/// totals[0..2] += tail[0..2].
template <class Device, class Scalar> void add_tail(const Scalar* tail, double* totals) {
  for_each<Device>(3, AddTail<Scalar>{tail, totals});
}

}  // namespace skein::inline SKEIN_ABI::ops
