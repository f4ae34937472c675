// SPDX-License-Identifier: Apache-2.0
// KeptBuffers: a model's buffers as they were before a step. Forward moves running statistics before anybody knows whether the
// step counts; one that is left out, or that throws, gives them back.
#pragma once
#include "../../device/memory.hpp"
#include "../../ops/step_scale.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// At the end of a device's step: if it is skipped and its loss is not finite, buffers are what was kept of them.
template <class Scalar> struct GiveBackBuffers {
  const ops::StepScale* scale = nullptr;
  const Scalar *tail = nullptr, *kept = nullptr;  // the sums of the step: the first is the loss
  Scalar* buffers = nullptr;
  SKEIN_HOST_DEVICE void operator()(long i) const {
    if (scale->skip && !(tail[0] - tail[0] == Scalar(0))) buffers[i] = kept[i];
  }
};
}  // namespace detail

/// A copy of a model's buffers from before a step, to give back if the step is left out: for a model on the host; on a device,
/// where steps are left out for the scale of the loss alone, for one whose loss is scaled.
template <class Model> class KeptBuffers {
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  static constexpr auto count = static_cast<std::size_t>(Model::sizes.buffers);
  static constexpr bool any = (on_host<Device> || Model::scales_loss) && count > 0;

 public:
  /// Allocates, once.
  void reserve([[maybe_unused]] const Model& model) {
    if constexpr (any)
      if (!values_.data()) values_ = Arena<Scalar, Device>(count, model.where());
  }
  /// Nothing waits.
  void keep([[maybe_unused]] const Model& model) {
    if constexpr (any) Memory<Device>::copy(values_.data(), model.buffers().data, count * sizeof(Scalar), model.where());
  }
  void give_back([[maybe_unused]] Model& model) const {
    if constexpr (any) try {
        Memory<Device>::copy(model.buffers().data, values_.data(), count * sizeof(Scalar), model.where());
      } catch (const DeviceError&) {  // a device that has failed: its memory is gone with it
      }
  }
  /// In a device's step, which may be captured: if `scale` skips it and the loss, tail[0], is not finite.
  void give_back_if_skipped([[maybe_unused]] Model& model, [[maybe_unused]] const ops::StepScale* scale,
                            [[maybe_unused]] const Scalar* tail) const {
    if constexpr (any)
      ops::for_each<Device>(static_cast<long>(count),
                            detail::GiveBackBuffers<Scalar>{scale, tail, values_.data(), model.buffers().data});
  }

 private:
  Arena<Scalar, Device> values_;
};

}  // namespace skein::inline SKEIN_ABI::train
