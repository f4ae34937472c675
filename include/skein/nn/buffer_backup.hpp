// SPDX-License-Identifier: Apache-2.0
// BufferBackup: buffers of a model, or of a stage of one, as they were before a step. Forward moves running statistics before
// anybody knows whether the step counts; one that is left out, or that throws, gives them back.
#pragma once
#include "../device/memory.hpp"
#include "../ops/step_scale.hpp"

namespace skein::inline SKEIN_ABI::nn {

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

/// A copy of buffers from before a step, to give back if the step is left out: on the host; on a device, where steps are left out
/// for the scale of the loss alone, where `scales_loss`. Elsewhere, and of no buffers, nothing is kept; where `may_be` is false
/// there are none, and it costs nothing.
template <class Scalar, class Device, bool scales_loss, bool may_be = true> class BufferBackup {
  using Span = DeviceSpan<Scalar, Device>;
  static constexpr bool any = may_be && (on_host<Device> || scales_loss);

 public:
  /// Allocates, once.
  void reserve(Span buffers, Device where) {
    if (any && values_.size() != buffers.size) values_ = Arena<Scalar, Device>(buffers.size, where);
  }
  /// Nothing waits.
  void keep(Span buffers) {
    if (any && values_.size() > 0) Memory<Device>::copy(values_.data(), buffers.data, bytes(), values_.where());
  }
  void give_back(Span buffers) const {
    if (any && values_.size() > 0) try {
        Memory<Device>::copy(buffers.data, values_.data(), bytes(), values_.where());
      } catch (const DeviceError&) {  // a device that has failed: its memory is gone with it
      }
  }
  /// In a device's step, which may be captured: if `scale` skips it and the loss, tail[0], is not finite.
  void give_back_if_skipped(Span buffers, const ops::StepScale* scale, const Scalar* tail) const {
    if (any && values_.size() > 0)
      ops::for_each<Device>(static_cast<long>(values_.size()),
                            detail::GiveBackBuffers<Scalar>{scale, tail, values_.data(), buffers.data});
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(Scalar); }

  Arena<Scalar, Device> values_;
};

}  // namespace skein::inline SKEIN_ABI::nn
