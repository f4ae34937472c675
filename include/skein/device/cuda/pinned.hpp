// SPDX-License-Identifier: Apache-2.0
// Page-locked memory of the host: what a GPU copies from and to without the host waiting.
#pragma once
#include "stream.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// One page-locked array on the host, zero at first. T is trivially copyable.
template <class T> class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t n) : size_(n) {
    if (n == 0) return;
    void* p = nullptr;
    check(cudaMallocHost(&p, n * sizeof(T)), "cudaMallocHost", Bytes{n * sizeof(T)});
    data_ = static_cast<T*>(p);
    for (std::size_t i = 0; i < n; ++i) data_[i] = T{};
  }
  Pinned(Pinned&& o) noexcept : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Pinned& operator=(Pinned&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Pinned() {
    if (data_) ignore(cudaFreeHost(data_));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::cuda
