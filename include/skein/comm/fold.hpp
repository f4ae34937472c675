// SPDX-License-Identifier: Apache-2.0
// The inner loop of every reduction: values of all ranks meet in the order of the ranks, blockwise through registers, and the
// result goes to one or several places. Plain loops that gcc and clang vectorise: comm/ knows no third party.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "op.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// to[*][i] = op(op(from[0][i], from[1][i]), ...) for i < n. A target may be one of the sources, at the same index.
using Fold = void (*)(const void* functor, void* const* to, int to_count, const void* const* from, int from_count, std::size_t n);

namespace detail {
template <class T, class Op> inline T finish(T value, [[maybe_unused]] int ranks) {
  if constexpr (std::is_same_v<Op, Mean>) {
    if constexpr (std::is_floating_point_v<T>) return value * (T(1) / static_cast<T>(ranks));
    else if constexpr (std::is_integral_v<T>) return static_cast<T>(value / static_cast<std::common_type_t<T, int>>(ranks));
    else return static_cast<T>(value / static_cast<T>(ranks));
  } else {
    return value;
  }
}

// One block of `Block` values at `at`. The accumulators are a local array, so that no store can alias a load.
template <class T, class Op, std::size_t Block>
inline void fold_block(const Op& op, void* const* to, int to_count, const void* const* from, int from_count, std::size_t at) {
  T sum[Block];
  const T* first = static_cast<const T*>(from[0]) + at;
  if (from_count == 1) {
    std::memcpy(static_cast<void*>(sum), first, sizeof sum);
  } else {
    const T* second = static_cast<const T*>(from[1]) + at;
    for (std::size_t i = 0; i < Block; ++i) sum[i] = op(first[i], second[i]);
    for (int r = 2; r < from_count; ++r) {
      const T* next = static_cast<const T*>(from[r]) + at;
      for (std::size_t i = 0; i < Block; ++i) sum[i] = op(sum[i], next[i]);
    }
  }
  if constexpr (std::is_same_v<Op, Mean>)
    for (std::size_t i = 0; i < Block; ++i) sum[i] = finish<T, Op>(sum[i], from_count);
  for (int t = 0; t < to_count; ++t) std::memcpy(static_cast<void*>(static_cast<T*>(to[t]) + at), sum, sizeof sum);
}
}  // namespace detail

/// The Fold of one scalar and one operation. The function object travels as its bytes.
template <class T, class Op>
void fold(const void* functor, void* const* to, int to_count, const void* const* from, int from_count, std::size_t n) {
  constexpr std::size_t block = sizeof(T) <= 256 ? 256 / sizeof(T) : 1;
  const Op& op = *static_cast<const Op*>(functor);
  std::size_t i = 0;
  if constexpr (std::is_default_constructible_v<T>) {
    for (; i + block <= n; i += block) detail::fold_block<T, Op, block>(op, to, to_count, from, from_count, i);
    for (; i < n; ++i) detail::fold_block<T, Op, 1>(op, to, to_count, from, from_count, i);
  } else {
    for (; i < n; ++i) {
      T sum = static_cast<const T*>(from[0])[i];
      for (int r = 1; r < from_count; ++r) sum = op(sum, static_cast<const T*>(from[r])[i]);
      for (int t = 0; t < to_count; ++t) static_cast<T*>(to[t])[i] = sum;
    }
  }
}

/// What is left to do with the sum of all ranks to have their Mean.
template <class T> void finish_mean(void* data, std::size_t n, int ranks) {
  T* const x = static_cast<T*>(data);
  for (std::size_t i = 0; i < n; ++i) x[i] = detail::finish<T, Mean>(x[i], ranks);
}

}  // namespace skein::inline SKEIN_ABI::comm
