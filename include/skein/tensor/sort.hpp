// SPDX-License-Identifier: Apache-2.0
// Sorting of vectors: sort() the values, argsort() the indices that would. Both are stable; NaNs come last in either order.
// Sorter<Device> is the point that a device specialises (here Cpu).
#pragma once
#include <algorithm>

#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

enum class Order { ascending, descending };

namespace functions {
/// Does a stand before b? NaNs before nothing.
template <Order order> struct Before {
  template <class S> constexpr bool operator()(const S& a, const S& b) const {
    if (a != a) return false;
    if (b != b) return true;
    return order == Order::ascending ? a < b : b < a;
  }
};
}  // namespace functions

namespace detail {
/// Sorts n values of a device in place; or n indices 0, 1, ... together with the values they stand for.
template <class Device> struct Sorter;

template <> struct Sorter<Cpu> {
  template <class S, class Before> static void values(S* data, long n, Cpu, Before before) {
    std::stable_sort(data, data + n, before);
  }
  template <class S, class Before> static void indices(long* index, S* keys, long n, Cpu, Before before) {
    for (long i = 0; i < n; ++i) index[i] = i;
    std::stable_sort(index, index + n, [&](long a, long b) { return before(keys[a], keys[b]); });
  }
};

template <class T> constexpr void assert_vector() {
  static_assert(T::rank == 1, "sort and argsort take a vector: flatten() a tensor of higher rank, or sort its rows one by one");
}
}  // namespace detail

/// The values of a vector in order: a tensor of its own. On a GPU in stream order.
template <Order order = Order::ascending, TensorExpression E> auto sort(E&& e) {
  using T = std::remove_cvref_t<E>;
  detail::assert_vector<T>();
  auto result = eval(std::forward<E>(e));
  if (result.size() > 1)
    detail::Sorter<typename T::Device>::values(result.data(), result.size(), result.device(), functions::Before<order>{});
  return result;
}

/// The indices of a vector's values in their order (long): argsort<Order::descending>(v)(range(0, k)) are those of the k largest.
template <Order order = Order::ascending, TensorExpression E> auto argsort(E&& e) {
  using T = std::remove_cvref_t<E>;
  detail::assert_vector<T>();
  auto keys = eval(std::forward<E>(e));
  Tensor<long, 1, typename T::Device> result(keys.shape(), keys.device());
  if (keys.size() > 0)
    detail::Sorter<typename T::Device>::indices(result.data(), keys.data(), keys.size(), keys.device(),
                                                functions::Before<order>{});
  return result;
}

}  // namespace skein::inline SKEIN_ABI
