// SPDX-License-Identifier: Apache-2.0
// Memory of a device: Memory<Device> allocates, clears and copies; Arena<T, Device> owns one aligned, zeroed array.
// The primary template is not defined: a device without its header is a compile error that names it.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "../core/error.hpp"
#include "kept_memory.hpp"
#include "span.hpp"

namespace skein::inline SKEIN_ABI {

template <DeviceTag Device> struct Memory;

namespace detail {
/// `bytes` of the host at a multiple of 64, not written yet; null where there are none. From 2 MiB on at a multiple of that, and
/// the system is asked for pages of that size: arrays that are larger than the caches are read and written faster so.
void* allocate_on_host(std::size_t bytes);
/// Gives whole pages of 2 MiB of memory that is zero back to the system, which makes zeros of them anew where somebody writes.
/// Returns the bytes given: 0 where the system knows no such call, or has locked the memory.
std::size_t give_back_zeros(void* p, std::size_t bytes);
}  // namespace detail

template <> struct Memory<Cpu> {
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2;  ///< as the system has it, for any array
  /// The device of this kind that the calling thread's calls go to.
  static constexpr Cpu here() { return {}; }
  /// Makes it the device that this thread's calls go to.
  static void make_current(Cpu) {}
  /// Makes it that device for a scope.
  struct Current {
    explicit constexpr Current(Cpu) {}
  };
  /// Zeroed and touched, so that no page fault is left for the first step. Throws MemoryError.
  static void* allocate(std::size_t bytes, Cpu = {}) {
    const std::size_t rounded = bytes < most ? (bytes + alignment - 1) / alignment * alignment : bytes;
    void* p = bytes < most ? detail::allocate_on_host(rounded ? rounded : alignment) : nullptr;
    if (!p) throw MemoryError(bytes);
    std::memset(p, 0, rounded);
    KeptMemory::add(p, rounded);
    return p;
  }
  /// Where a call that cannot be cancelled works in it (KeptMemory::keep), it stays.
  static void release(void* p, std::size_t, Cpu = {}) noexcept {
    if (KeptMemory::remove(p)) std::free(p);
  }
  static void clear(void* p, std::size_t bytes, Cpu = {}) { std::memset(p, 0, bytes); }
  /// Zeros that nobody is going to write: their whole pages of 2 MiB take no memory until somebody does, and reading them is no
  /// write. For memory of this process alone. Returns the bytes that are free now.
  static std::size_t clear_and_give_back(void* p, std::size_t bytes, Cpu = {}) {
    clear(p, bytes);
    return detail::give_back_zeros(p, bytes);
  }
  static void copy(void* to, const void* from, std::size_t bytes, Cpu = {}) { std::memmove(to, from, bytes); }
};

/// One array on a device, 64-byte aligned, zero at first. Moves, never copies by accident: copy() says so.
template <class T, DeviceTag Device = Cpu> class Arena {
 public:
  using device = Device;
  Arena() = default;
  explicit Arena(std::size_t n, Device where = {})
      : data_(n ? static_cast<T*>(Memory<Device>::allocate(bytes_of(n), where)) : nullptr), size_(n), where_(where) {}
  Arena(Arena&& o) noexcept : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)), where_(o.where_) {}
  Arena& operator=(Arena&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    std::swap(where_, o.where_);
    return *this;
  }
  ~Arena() {
    if (data_) Memory<Device>::release(data_, size_ * sizeof(T), where_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  Device where() const { return where_; }
  DeviceSpan<T, Device> span() { return {data_, size_}; }
  DeviceSpan<const T, Device> span() const { return {data_, size_}; }
  void clear() {
    if (data_) Memory<Device>::clear(data_, size_ * sizeof(T), where_);
  }
  Arena copy() const {
    Arena a(size_, where_);
    if (size_) Memory<Device>::copy(a.data_, data_, size_ * sizeof(T), where_);
    return a;
  }

 private:
  static std::size_t bytes_of(std::size_t n) {
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    return n <= all / sizeof(T) ? n * sizeof(T) : all;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  [[no_unique_address]] Device where_{};
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "memory.ipp"
#endif
