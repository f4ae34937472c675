// SPDX-License-Identifier: Apache-2.0
// The stages of a chain on a device of its own: what ReducedGradient is on the host. The factor of the gradients, the norm and
// whether to skip the step stay in the device's memory; passes and norms wait for nothing, so that they can be captured.
// Transforms of tensors run their expressions one parameter after the other; one that asks for a number waits for it.
#pragma once
#include <cmath>

#include "../../ops/step_scale.hpp"
#include "../../optim/transform/visit_tensor.hpp"
#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The factor of the gradients gets that of a transform of their norm.
template <class Transform> struct ScaleByNorm {
  Transform transform;
  const double* squares = nullptr;  // of the gradients as they are in memory
  ops::StepScale* scale = nullptr;
  SKEIN_HOST_DEVICE void operator()(long) const {
    scale->norm = std::sqrt(*squares) * scale->factor;
    scale->factor *= transform.factor(scale->norm);
  }
};
/// The factor is in the gradients now.
struct TakeFactor {
  ops::StepScale* scale = nullptr;
  SKEIN_HOST_DEVICE void operator()(long) const { scale->factor = 1; }
};
}  // namespace detail

/// What a chain works with on a device of its own.
template <class Parts> class DeviceGradient {
  using Scalar = typename Parts::Scalar;
  using Device = typename Parts::Device;

 public:
  /// `call` has scale(), which is made; `may_skip`: the step may be one whose gradients overflowed.
  DeviceGradient(Parts& parts, const optim::StepCall<Scalar>& call, bool may_skip)
      : parts_(parts), call_(call), own_(parts.placement.own()), may_skip_(may_skip) {}

  /// Is it in memory as it is, scaled?
  bool whole() const { return whole_; }
  /// By the factor that the transform makes of its norm, over the ranks that own a part.
  template <class Transform> void scale_by_norm(const Transform& transform) {
    double* const squares = parts_.device.squares();
    parts_.optimizer.sum_of_squares(call_, own_.begin, own_.end, squares);
    if constexpr (parallel::OwnsPart<typename Parts::PolicyState>)
      parts_.policy_state.sum_over_owners_there(DeviceSpan<double, Device>(squares, 1));
    ops::for_each<Device>(1, detail::ScaleByNorm<Transform>{transform, squares, parts_.device.scale()});
    whole_ = false;
  }
  /// write(call, into) puts it into its own array.
  template <class Write> void make_whole(const Write& write) {
    write(parts_.optimizer.complete(parameters(), call_, own_.begin, own_.end), gradients());
    ops::for_each<Device>(1, detail::TakeFactor{parts_.device.scale()});
    whole_ = true;
  }
  /// visit(parameter) for those of this rank. In a step that is skipped for none: their state stays.
  template <class Visit> void each_tensor(const Visit& visit) {
    if (may_skip_ && parts_.device.read_scale().skip) return;
    const plan::Range rows = plan::rows_within(parts_.optimizer.entries(), own_);
    for (long k = rows.begin; k < rows.end; ++k)
      optim::visit_tensor(parts_.optimizer, static_cast<std::size_t>(k), call_, parameters(), gradients(), visit,
                          parts_.model->where());
  }

 private:
  Scalar* parameters() const { return parts_.model->weights().unguarded().data; }
  Scalar* gradients() const { return parts_.model->gradient_arena().data; }

  Parts& parts_;
  const optim::StepCall<Scalar>& call_;
  plan::Range own_;
  bool may_skip_, whole_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train
