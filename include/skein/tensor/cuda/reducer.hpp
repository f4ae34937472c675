// SPDX-License-Identifier: Apache-2.0
// Reductions on a GPU, without storing what is reduced. All values: each of many threads folds its share, in packs of 16 bytes
// where the layout allows, and CUB joins what they have (so that CUB's kernels are compiled once a type, not once an expression).
// Along an axis: a warp a row where the axis is dense, a thread an output elsewhere, and long axes of few outputs in parts that a
// second kernel joins. The order of additions depends on extents and layout alone: the same bits in every run. A whole reduction
// brings its number to the host and waits for it.
#pragma once
#include <cmath>

#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../reducer.hpp"
#include "nest.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

/// What is kept of values, and how: by a sum, maximum or minimum.
template <class Op, class S, class R> struct TotalFold {
  using Total = typename Op::Total;
  using Join = typename Op::Combine;
  Finish finish{};
  static constexpr Total none() { return Op::identity; }
  static constexpr Total add(Total total, S value, long) { return typename Op::Combine{}(total, static_cast<Total>(value)); }
  constexpr Total operator()(const Total& a, const Total& b) const { return Join{}(a, b); }
  constexpr R result(Total total) const { return finish.template apply<R>(total); }
};
/// By the place of the best value: the first of equals; NaNs only where there is nothing else.
template <class Better, class S> struct ArgFold {
  struct Total {
    S value;
    long index;  // -1: none yet
  };
  using Join = ArgFold;
  static constexpr Total none() { return {S(0), -1}; }
  static constexpr Total add(Total best, S value, long index) { return ArgFold{}(best, Total{value, index}); }
  constexpr Total operator()(const Total& a, const Total& b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool a_lost = a.value != a.value, b_lost = b.value != b.value;
    if (a_lost != b_lost) return a_lost ? b : a;
    if (Better{}(b.value, a.value)) return b;
    if (Better{}(a.value, b.value)) return a;
    return b.index < a.index ? b : a;
  }
  static constexpr long result(const Total& best) { return best.index; }
};

/// The Euclidean norm: a sum of squares, of floats in double, which has room for them all. Those of doubles that are very large
/// or small are added up apart, of scaled values. Blue, "A Portable Fortran Program to Find the Euclidean Norm of a Vector",
/// 1978, with LAPACK's constants.
template <class S> struct NormFold {
  using Total = double;
  using Join = NormFold;
  static constexpr Total none() { return 0; }
  static constexpr Total add(Total total, S value, long) {
    return total + static_cast<double>(value) * static_cast<double>(value);
  }
  constexpr Total operator()(const Total& a, const Total& b) const { return a + b; }
  constexpr S result(Total total) const { return static_cast<S>(std::sqrt(total)); }
};
template <> struct NormFold<double> {
  struct Total {
    double large, usual, small;
  };
  using Join = NormFold;
  static constexpr double of_large = 0x1p-538, of_small = 0x1p537;  // by what those values are multiplied
  static constexpr Total none() { return {0, 0, 0}; }
  static constexpr Total add(Total total, double value, long) {
    const double a = value < 0 ? -value : value;
    if (a > 0x1p486) total.large += (a * of_large) * (a * of_large);
    else if (a < 0x1p-511) total.small += (a * of_small) * (a * of_small);
    else total.usual += a * a;
    return total;
  }
  constexpr Total operator()(const Total& a, const Total& b) const {
    return {a.large + b.large, a.usual + b.usual, a.small + b.small};
  }
  constexpr double result(const Total& t) const {
    if (t.large > 0) return std::sqrt(t.large + t.usual * of_large * of_large) / of_large;
    if (t.usual == 0) return std::sqrt(t.small) / of_small;
    return std::sqrt(t.usual + t.small / of_small / of_small);
  }
};

/// The total of every `threads`-th group: of W values of a row each; or of one, whose index is the group's.
template <int W, class Fold, int N, class B> struct FoldShare {
  Groups<N> groups;
  B bound;
  typename Fold::Total* totals;
  long count, threads;

  SKEIN_HOST_DEVICE void operator()(long thread) const {
    typename Fold::Total total = Fold::none();
    for (long g = thread; g < count; g += threads) {
      const char* nowhere = nullptr;
      B b = bound;
      long i = groups.enter(g, nowhere, b);
      const long n = groups.loop.extents.e[N - 1], end = i + groups.width < n ? i + groups.width : n;
      if constexpr (W > 1) {
        if (groups.width == W && i + W <= n) {
          const auto values = b.template pack<W>(i);
          for (int j = 0; j < W; ++j) total = Fold::add(total, values.value[j], 0);
          continue;
        }
      }
      for (; i < end; ++i) total = Fold::add(total, b.template at<Access::strided>(i), g);
    }
    totals[thread] = total;
  }
};
/// The i-th of an array.
template <class T> struct ValueAt {
  const T* data;
  constexpr T operator()(long i) const { return data[i]; }
};

/// Part `job / outputs` of the axis (the innermost) of output `job % outputs`. A lane keeps four totals, so that as many loads
/// are under way; or one, plainly.
template <class Fold, class R, int N, class B> struct FoldPart {
  Fold fold;
  Groups<N> outputs;  // the nest without the axis, which is N - 1 of the leaves
  R* to;
  typename Fold::Total* parts;  // null: one part, straight into the target
  B bound;
  long count, length, chunk;
  bool plain;

  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long job, Lanes lanes) const {
    const long part = parts ? outputs.divide(job, count) : 0, output = job - part * count;
    const long begin = part * chunk, end = begin + chunk < length ? begin + chunk : length;
    R* target = to;
    B b = bound;
    outputs.enter(output, target, b);
    constexpr int ahead = 4;
    typename Fold::Total total[ahead] = {Fold::none(), Fold::none(), Fold::none(), Fold::none()};
    long i = begin + lanes.index;
    for (; !plain && i + (ahead - 1) * lanes.count < end; i += ahead * lanes.count)
      for (int k = 0; k < ahead; ++k)
        total[k] = Fold::add(total[k], b.template at<Access::strided>(i + k * lanes.count), i + k * lanes.count);
    for (; i < end; i += lanes.count) total[0] = Fold::add(total[0], b.template at<Access::strided>(i), i);
    for (int k = 1; k < ahead; ++k) total[0] = fold(total[0], total[k]);
    total[0] = lanes.reduce(total[0], fold);
    if (lanes.index != 0) return;
    if (parts) parts[job] = total[0];
    else *target = fold.result(total[0]);
  }
};
/// The parts of one output, joined.
template <class Fold, class R, int N> struct JoinParts {
  Fold fold;
  Groups<N> outputs;
  R* to;
  const typename Fold::Total* parts;
  long count, chunks;

  struct Nothing {
    constexpr void advance(int, long) {}
  };
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long output, Lanes lanes) const {
    R* target = to;
    Nothing nothing;
    outputs.enter(output, target, nothing);
    typename Fold::Total total = Fold::none();
    for (long p = lanes.index; p < chunks; p += lanes.count) total = fold(total, parts[p * count + output]);
    total = lanes.reduce(total, fold);
    if (lanes.index == 0) *target = fold.result(total);
  }
};

}  // namespace detail

namespace cuda {
namespace detail {
/// Scratch for one call, where the policy's kernels can write.
template <class Policy, class T> struct Scratch {
  static constexpr bool own = is_own_policy<Policy>;
  Arena<T, Cpu> host;
  T* data;
  explicit Scratch(long n) : host(own ? 0 : static_cast<std::size_t>(n)) {
    data = own ? static_cast<T*>(workspace().get(static_cast<std::size_t>(n) * sizeof(T))) : host.data();
  }
};
}  // namespace detail

/// All values of a nest folded into one, on the host when it returns. A value's index is its place in the nest.
template <class Fold, class Policy, int N, class B>
typename Fold::Total fold_all(const Policy& policy, skein::detail::Loop<N> loop, B bound) {
  namespace in = skein::detail;
  loop.stride = {};
  using Total = typename Fold::Total;
  constexpr bool indices = std::is_class_v<Total>;  // count by values, so that there is one in a group
  constexpr int W = indices ? 1 : in::pack_size<char, B> < 4 ? in::pack_size<char, B> : 4;
  constexpr long most_threads = 1 << 17;
  const bool packed = W > 1 && in::leaves_fit<W>(loop, bound);
  const in::Groups<N> groups(loop, packed ? W : 1);
  const long count = groups.count(), threads = count < most_threads ? count : most_threads;
  const auto run = [&](Total* totals) {
    for_each(policy, threads, in::FoldShare<W, Fold, N, B>{groups, bound, totals, count, threads});
    reduce_into(policy, totals + threads, threads, in::ValueAt<Total>{totals}, typename Fold::Join{}, Fold::none());
  };
  Total total;
  if constexpr (is_own_policy<Policy>) {
    const Cuda device = current_device();
    Arena<Total, Cuda> totals(static_cast<std::size_t>(threads + 1), device);
    run(totals.data());
    Memory<Cuda>::to_host(&total, totals.data() + threads, sizeof total, device);
  } else {
    Arena<Total, Cpu> totals(static_cast<std::size_t>(threads + 1));
    run(totals.data());
    total = totals.data()[threads];
  }
  return total;
}

/// The innermost axis folded into the target, whose strides the other axes of the nest have; does not wait.
template <class Policy, class Fold, class R, int N, class B>
void fold_axis(const Policy& policy, R* to, skein::detail::Loop<N> loop, B bound, bool by_warp, Fold fold) {
  namespace in = skein::detail;
  const bool plain = plain_kernels();
  const long threads_wanted = plain ? 1 << 15 : 1 << 17;
  constexpr long least_chunk = 16;
  const long length = loop.extents.e[N - 1];
  loop.extents.e[N - 1] = 1;
  const in::Groups<N> outputs(loop);
  const long count = outputs.count(), lanes = by_warp ? 32 : 1;
  const long wanted = (threads_wanted + count * lanes - 1) / (count * lanes),
             most = (length + lanes * least_chunk - 1) / (lanes * least_chunk);
  const long chunks_wanted = wanted < most ? wanted : most > 0 ? most : 1;
  const long chunk = (length + chunks_wanted - 1) / chunks_wanted, chunks = chunk > 0 ? (length + chunk - 1) / chunk : 1;
  using Total = typename Fold::Total;
  const detail::Scratch<Policy, Total> scratch(chunks > 1 ? chunks * count : 0);
  in::FoldPart<Fold, R, N, B> part{fold, outputs, to, chunks > 1 ? scratch.data : nullptr, bound, count, length, chunk, plain};
  part.outputs.narrow = chunks * count < (1L << 31);
  if (by_warp) for_each_row(policy, chunks * count, part);
  else for_each(policy, chunks * count, detail::OneLane<decltype(part)>{part});
  if (chunks > 1) for_each_row(policy, count, in::JoinParts<Fold, R, N>{fold, outputs, to, scratch.data, count, chunks});
}
}  // namespace cuda

namespace detail {
template <> struct Reducer<Cuda> {
  /// Waits for the result.
  template <class Op, int N, class B> static typename Op::Total all(Cuda where, const Loop<N>& loop, B bound) {
    const cuda::UseDevice there(where);
    return cuda::fold_all<TotalFold<Op, typename B::Scalar, typename Op::Total>>(cuda::policy(), loop, bound);
  }
  template <class Op, class R, int N, class B>
  static void axis(R* to, Cuda where, Loop<N> loop, B bound, int which, Finish finish) {
    const cuda::UseDevice there(where);
    run(cuda::policy(), to, loop, bound, which, TotalFold<Op, typename B::Scalar, R>{finish});
  }
  /// Euclidean norms, whatever the squares.
  template <class R, int N, class B> static void norm_axis(R* to, Cuda where, Loop<N> loop, B bound, int which) {
    const cuda::UseDevice there(where);
    run(cuda::policy(), to, loop, bound, which, NormFold<R>{});
  }
  /// Waits for the result.
  template <class Better, int N, class B> static long arg_all(Cuda where, const Loop<N>& loop, B bound) {
    const cuda::UseDevice there(where);
    return cuda::fold_all<ArgFold<Better, typename B::Scalar>>(cuda::policy(), loop, bound).index;
  }
  template <class Better, int N, class B> static void arg_axis(long* to, Cuda where, Loop<N> loop, B bound, int which) {
    const cuda::UseDevice there(where);
    run(cuda::policy(), to, loop, bound, which, ArgFold<Better, typename B::Scalar>{});
  }
  /// Any axis, by any policy.
  template <class Policy, class R, int N, class B, class Fold>
  static void run(const Policy& policy, R* to, Loop<N> loop, B bound, int which, Fold fold) {
    bool axis_unit = true, inner_unit = which != N - 1;
    bound.leaves([&](auto& l) {
      axis_unit = axis_unit && (l.stride.e[which] == 1 || l.stride.e[which] == 0);
      inner_unit = inner_unit && (l.stride.e[N - 1] == 1 || l.stride.e[N - 1] == 0);
    });
    const bool by_warp = axis_unit && !inner_unit && loop.extents.e[which] >= 16;
    rotate_axis(loop, bound, which, N - 1);
    cuda::fold_axis(policy, to, loop, bound, by_warp, fold);
  }
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
