// SPDX-License-Identifier: Apache-2.0
// Scratch memory of the libraries (cuBLASLt, cuDNN, CUB): one array a thread and device, since operations of one stream follow
// each other. In a training it belongs to the memory plan: Pass::prepare() lets every layer say what it will want (reserve), then
// it is made once, and a step takes from it (get) without an allocation. Free-standing operations let it grow.
#pragma once
#include <algorithm>
#include <memory>

#include "memory.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// One array of scratch memory, which grows until it is sealed.
class Workspace {
 public:
  explicit Workspace(Cuda device = {}) : memory_(std::make_shared<Arena<std::byte, Cuda>>(0, device)) {}

  /// Says that calls will want so many bytes; grows, in stream order.
  void reserve(std::size_t bytes) {
    if (bytes <= memory_->size()) return;
    if (sealed_)
      throw DeviceError(text("an operation wants a workspace of {} bytes, the plan has {}: its prepare() must say what it takes",
                             bytes, memory_->size()));
    const Cuda device = memory_->where();
    // First away, where no graph holds it, then anew; and known where it is, should there be no room.
    memory_ = std::make_shared<Arena<std::byte, Cuda>>(0, device);
    *memory_ = Arena<std::byte, Cuda>((bytes + 511) / 512 * 512, device);
  }
  /// At least `bytes`, 256-byte aligned, until the next operation of this thread; null for 0.
  void* get(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    reserve(bytes);
    return memory_->data();
  }
  std::size_t size() const { return memory_->size(); }
  /// The memory as it is now, which stays as long as this lives: a captured step has its address.
  std::shared_ptr<const void> hold() const { return memory_; }
  /// From now on (while a step is captured, say) growing is an error.
  void seal(bool sealed = true) { sealed_ = sealed; }
  bool sealed() const { return sealed_; }

 private:
  std::shared_ptr<Arena<std::byte, Cuda>> memory_;
  bool sealed_ = false;
};

/// The calling thread's workspace of the current device.
inline Workspace& workspace() {
  (void)detail::thread_streams();  // made before, gone after: at the thread's end, memory is released in their order
  thread_local std::array<std::unique_ptr<Workspace>, detail::most_devices> all;
  const Cuda device = current_device();
  std::unique_ptr<Workspace>& mine = all[detail::index_of(device)];
  if (!mine) mine = std::make_unique<Workspace>(device);
  return *mine;
}

}  // namespace skein::inline SKEIN_ABI::cuda
