// SPDX-License-Identifier: Apache-2.0
// SharedPages: memory of one rank that the other ranks of its communicator read and write too. An all-reduce of a span that lies
// in such pages, at the same place on every rank, copies nothing: each rank adds its part of all ranks' spans where they are.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What share(bytes) of a communicator returns: this rank's pages, zeroed; on every rank, or on none. They live as long as one
/// copy of this does, also beyond the communicator, and end without waiting for other ranks.
class SharedPages {
 public:
  /// None: the ranks could not share.
  SharedPages() = default;
  /// `data` owns them.
  SharedPages(std::shared_ptr<void> data, std::size_t bytes) : data_(std::move(data)), bytes_(bytes) {}

  /// There are pages, on all ranks alike.
  explicit operator bool() const { return data_ != nullptr; }
  std::size_t bytes() const { return bytes_; }
  /// All of them as values of T, aligned for any; empty where there are none. Must not outlive the pages.
  template <class T> std::span<T> span() const {
    static_assert(std::is_trivially_copyable_v<T>, "what several processes read must be trivially copyable");
    return {static_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }
  /// A share of the ownership, with the address; null where there are none.
  const std::shared_ptr<void>& memory() const { return data_; }

 private:
  std::shared_ptr<void> data_;
  std::size_t bytes_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
