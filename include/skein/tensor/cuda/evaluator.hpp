// SPDX-License-Identifier: Apache-2.0
// Assignments on a GPU: one kernel each, by Thrust. cuda::assign takes the execution policy as a parameter, so that the same code
// runs on the host with Thrust's OpenMP and sequential systems. Rows that are dense, aligned and of unit stride (or one value all
// along) are read and written 16 bytes at a time, anything else value by value.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../evaluate.hpp"
#include "nest.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

/// A group of values: W at once, or one with any strides. One function object for both: half the kernels to compile.
template <int W, class S, int N, class B> struct AssignGroup {
  Groups<N> groups;  // of W values or of one
  S* to;
  B bound;

  SKEIN_HOST_DEVICE void operator()(long g) const {
    S* target = to;
    B b = bound;
    long i = groups.enter(g, target, b);
    const long n = groups.loop.extents.e[N - 1];
    if (W > 1 && groups.width == W) {
      if (i + W <= n) {
        const auto values = b.template pack<W>(i);
        Pack<S, W> out;
        for (int j = 0; j < W; ++j) out.value[j] = static_cast<S>(values.value[j]);
        *as_pack<W>(target + i) = out;
      } else {
        for (; i < n; ++i) target[i] = static_cast<S>(b.template at<Access::strided>(i));
      }
    } else {
      target[i * groups.loop.stride.e[N - 1]] = static_cast<S>(b.template at<Access::strided>(i));
    }
  }
};

}  // namespace detail

namespace cuda {
/// *to = bound over the whole nest by `policy`: what detail::Evaluator<Cuda> calls with the device's own.
template <class Policy, class S, int N, class B>
void assign(const Policy& policy, S* to, const skein::detail::Loop<N>& loop, B bound) {
  namespace in = skein::detail;
  constexpr int W = in::pack_size<S, B>;
  const bool packed =
      W > 1 && loop.stride.e[N - 1] == 1 && in::packs_fit<W>(to, loop.stride, loop) && in::leaves_fit<W>(loop, bound);
  const in::AssignGroup<W, S, N, B> kernel{in::Groups<N>(loop, packed ? W : 1), to, bound};
  for_each(policy, kernel.groups.count(), kernel);
}
}  // namespace cuda

namespace detail {
template <> struct Evaluator<Cuda> {
  /// Given to the calling thread's stream of `where`; does not wait.
  template <class S, int N, class B> static void assign(S* to, Cuda where, const Loop<N>& loop, B bound) {
    const cuda::UseDevice there(where);
    cuda::assign(cuda::policy(), to, loop, bound);
  }
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
