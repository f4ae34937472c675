// SPDX-License-Identifier: Apache-2.0
// The host's memory that a Loader stages in. A trainer whose device copies from page-locked memory without the host waiting says
// so here by two functions; the data house knows no device.
#pragma once
#include <cstddef>
#include <cstring>
#include <utility>

#include "../device/memory.hpp"

namespace skein::inline SKEIN_ABI::data {

/// How staging memory is made, and released. Empty: ordinary memory.
struct HostMemory {
  void* (*allocate)(std::size_t bytes) = nullptr;
  void (*release)(void* p, std::size_t bytes) = nullptr;
};

/// One zeroed array of such memory. T is trivially copyable.
template <class T> class HostArray {
 public:
  HostArray() = default;
  explicit HostArray(std::size_t n, HostMemory memory = {}) : size_(n), memory_(memory) {
    if (n == 0) return;
    const std::size_t bytes = n * sizeof(T);
    data_ = static_cast<T*>(memory.allocate ? memory.allocate(bytes) : Memory<Cpu>::allocate(bytes));
    if (memory.allocate) std::memset(static_cast<void*>(data_), 0, bytes);
  }
  HostArray(HostArray&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)), memory_(o.memory_) {}
  HostArray& operator=(HostArray&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    std::swap(memory_, o.memory_);
    return *this;
  }
  ~HostArray() {
    if (!data_) return;
    if (memory_.release) memory_.release(data_, size_ * sizeof(T));
    else Memory<Cpu>::release(data_, size_ * sizeof(T));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  HostMemory memory_{};
};

}  // namespace skein::inline SKEIN_ABI::data
