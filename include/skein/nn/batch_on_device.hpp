// SPDX-License-Identifier: Apache-2.0
// A batch of the host where a pass wants it: as it is where the model is on the host too, else a blocking copy, for hand-written
// loops. (A training stages its batches ahead of the steps: train/step_device.hpp.)
#pragma once
#include <cstdint>

#include "../device/copy.hpp"
#include "../device/memory.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Keeps the copy's memory, for the largest batch so far.
template <class Scalar, class Device> class BatchOnDevice {
 public:
  explicit BatchOnDevice(Device where) : where_(where) {}

  /// What a batch of the host becomes on a device.
  struct There {
    using device = Device;
    const Scalar* x = nullptr;
    long pitch = 0;
    const std::int32_t* labels = nullptr;
    const Scalar* targets = nullptr;
    long target_pitch = 0, count = 0;
    std::int64_t first = 0;
  };
  /// The batch where the model is: itself, or a copy that lives until the next call.
  template <class Batch> decltype(auto) operator()(const Batch& batch) {
    if constexpr (std::same_as<DeviceOf<Batch>, Device>) {
      return static_cast<const Batch&>(batch);
    } else {
      There there;
      there.pitch = batch.pitch;
      there.target_pitch = batch.target_pitch;
      there.count = batch.count;
      there.first = batch.first;
      there.x = copy_there(x_, batch.x, batch.count * batch.pitch);
      there.labels = copy_there(labels_, batch.labels, batch.count);
      there.targets = copy_there(targets_, batch.targets, batch.count * batch.target_pitch);
      return there;
    }
  }

 private:
  template <class T> const T* copy_there(Arena<T, Device>& to, const T* from, long n) {
    if (!from || n <= 0) return from ? to.data() : nullptr;
    if (static_cast<long>(to.size()) < n) to = Arena<T, Device>(static_cast<std::size_t>(n), where_);
    Copy<Device, Cpu>::run(to.data(), from, static_cast<std::size_t>(n) * sizeof(T), where_);
    return to.data();
  }

  [[no_unique_address]] Device where_;
  Arena<Scalar, Device> x_, targets_;
  Arena<std::int32_t, Device> labels_;
};

}  // namespace skein::inline SKEIN_ABI::nn
