// SPDX-License-Identifier: Apache-2.0
// GrowingArray: an array that grows behind, as a vector does, of which there is never a second copy while it grows: the pages of
// a large one are moved, not copied. What the columns of a table are made of, so that reading one needs no more than its bytes.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// Other memory for what is at `memory` (null: nothing), as far as it fits; none for 0 bytes. From 128 KiB on it is pages of its
/// own, which take memory where they have been written. Throws MemoryError.
void* resize_memory(void* memory, std::size_t bytes_before, std::size_t bytes);
}  // namespace detail

/// Values one behind another. Values that resize() adds have not been written.
template <class T> class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>, "a GrowingArray moves its values as bytes");

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray& other) { append(other.data_, other.size_); }
  GrowingArray(GrowingArray&& other) noexcept { swap(other); }
  GrowingArray& operator=(GrowingArray other) noexcept {
    swap(other);
    return *this;
  }
  ~GrowingArray() { detail::resize_memory(data_, capacity_ * sizeof(T), 0); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  void append(const T* values, std::size_t count) {
    if (count == 0) return;
    const std::size_t before = size_;
    resize(before + count);
    std::memcpy(data_ + before, values, count * sizeof(T));
  }
  void resize(std::size_t size) {
    if (size > capacity_) grow(size);
    size_ = size;
  }
  /// Keeps the first `size` values, and gives the memory of the others back.
  void shrink(std::size_t size) {
    reallocate(size);
    size_ = size;
  }
  /// Keeps the memory.
  void clear() { size_ = 0; }

 private:
  void swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void grow(std::size_t least) {
    const std::size_t more = capacity_ + capacity_ / 2, few = 32 / sizeof(T);
    reallocate(least > more ? (least > few ? least : few) : more);
  }
  void reallocate(std::size_t capacity) {
    data_ = static_cast<T*>(detail::resize_memory(data_, capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "growing_array.ipp"
#endif
