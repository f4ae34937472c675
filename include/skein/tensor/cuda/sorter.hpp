// SPDX-License-Identifier: Apache-2.0
// Sorting on a GPU, by Thrust's stable merge sort. Thrust takes scratch memory from the driver for the call.
#pragma once
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include "../../device/cuda/launch.hpp"
#include "../sort.hpp"

namespace skein::inline SKEIN_ABI {

namespace cuda {
/// Called with an execution policy.
template <class S, class Before> struct SortValues {
  S* data;
  long count;
  Before before;
  template <class Policy> void operator()(const Policy& policy) const { thrust::stable_sort(policy, data, data + count, before); }
};
/// The places of the values in sorted order, stable; the keys are sorted with them.
template <class S, class Before> struct SortIndices {
  long* index;
  S* keys;
  long count;
  Before before;
  template <class Policy> void operator()(const Policy& policy) const {
    thrust::sequence(policy, index, index + count);
    thrust::stable_sort_by_key(policy, keys, keys + count, index, before);
  }
};
}  // namespace cuda

namespace detail {
template <> struct Sorter<Cuda> {
  template <class S, class Before> static void values(S* data, long n, Cuda where, Before before) {
    const cuda::UseDevice there(where);
    cuda::with_policy(cuda::SortValues<S, Before>{data, n, before});
  }
  template <class S, class Before> static void indices(long* index, S* keys, long n, Cuda where, Before before) {
    const cuda::UseDevice there(where);
    cuda::with_policy(cuda::SortIndices<S, Before>{index, keys, n, before});
  }
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
