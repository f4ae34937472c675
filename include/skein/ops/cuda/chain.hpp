// SPDX-License-Identifier: Apache-2.0
// The pass between an activation and the product before it on the GPU: the derivative, and the sums over columns that are the
// gradient of the bias. No atomics: the cut of a sum is a function of the shape alone, so the bits are the same in every run.
//
//     dy, y, g (rows, N): the gradient behind an activation, its output, the gradient in front of it; r a row, j a column, b a
//     block of rows
#pragma once
#include <type_traits>

#include "../../core/half.hpp"
#include "../../device/cuda/launch.hpp"
#include "../dense.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace kernel {
/// What a kernel computes with.
template <class Sample> using Wide = std::conditional_t<is_half<Sample>, float, Sample>;

/// The gradient in front of an activation: g = chain(dy, y), which is kept.
template <class Chain, class Sample> struct Chained {
  const Sample* dy;
  const Sample* y;
  Sample* g;
  constexpr Wide<Sample> make(long at) const {
    return Chain{}(static_cast<Wide<Sample>>(dy[at]), static_cast<Wide<Sample>>(y[at]));
  }
  constexpr void keep(long at, Wide<Sample> v) const { g[at] = static_cast<Sample>(v); }
};
/// The gradient as it is.
template <class Sample> struct AsItIs {
  const Sample* dy;
  constexpr Wide<Sample> make(long at) const { return static_cast<Wide<Sample>>(dy[at]); }
  constexpr void keep(long, Wide<Sample>) const {}
};
/// Every value of rows of N, where nobody wants sums.
template <int N, class Value> struct EachValue {
  Value value;
  constexpr void operator()(long i) const {
    const long at = i / N * row_pitch(N) + i % N;
    value.keep(at, value.make(at));
  }
};

template <class Sum> struct Plus {
  constexpr Sum operator()(Sum a, Sum b) const { return a + b; }
};

/// Adds rows r, r + step, ... of column j to the sum, Ahead at a time, while there are so many before `end`.
template <int N, int Ahead, class Sum, class Value>
constexpr void add_rows(const Value& value, long j, long& r, long end, long step, Sum& sum) {
  for (; r + (Ahead - 1) * step < end; r += Ahead * step) {
    Sum v[Ahead] = {};
    for (int k = 0; k < Ahead; ++k) v[k] = value.make((r + k * step) * row_pitch(N) + j);
    for (int k = 0; k < Ahead; ++k) {
      value.keep((r + k * step) * row_pitch(N) + j, v[k]);
      sum += v[k];
    }
  }
}
/// The sum down column j over rows begin, begin + step, ... before end. Several rows are under way at a time: g may be dy or y,
/// so a compiler would not load a row before the one above is stored.
template <int N, class Sum, class Value> constexpr Sum sum_down(const Value& value, long j, long begin, long end, long step) {
  Sum sum = 0;
  long r = begin;
  add_rows<N, 8>(value, j, r, end, step, sum);
  add_rows<N, 4>(value, j, r, end, step, sum);
  add_rows<N, 1>(value, j, r, end, step, sum);
  return sum;
}

/// The lanes of a warp go down one column: all in one kernel.
template <int N, class Value, class Sum, class Scalar> struct WholeColumn {
  Value value;
  long rows;
  Scalar* sums;
  bool accumulate;
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long j, Lanes lanes) const {
    const Sum sum = lanes.reduce(sum_down<N, Sum>(value, j, lanes.index, rows, Lanes::count), Plus<Sum>{});
    if (lanes.index == 0) sums[j] = static_cast<Scalar>(accumulate ? static_cast<Sum>(sums[j]) + sum : sum);
  }
};
/// Many rows: neighbouring threads take neighbouring columns of a block of rows.
template <int N, class Value, class Sum> struct ColumnPart {
  Value value;
  long rows, blocks;
  Sum* partial;  // (blocks, N)
  constexpr void operator()(long i) const {
    const long b = i / N;
    partial[i] = sum_down<N, Sum>(value, i - b * N, rows * b / blocks, rows * (b + 1) / blocks, 1);
  }
};
template <int N, class Sum, class Scalar> struct ColumnWhole {
  const Sum* partial;
  long blocks;
  Scalar* sums;
  bool accumulate;
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long j, Lanes lanes) const {
    Sum sum = 0;
    for (long b = lanes.index; b < blocks; b += Lanes::count) sum += partial[b * N + j];
    sum = lanes.reduce(sum, Plus<Sum>{});
    if (lanes.index == 0) sums[j] = static_cast<Scalar>(accumulate ? static_cast<Sum>(sums[j]) + sum : sum);
  }
};
}  // namespace kernel

/// The cut of a sum over rows of N values: a function of the shape alone, so that the bits are the same in every run.
struct RowBlocks {
  long blocks = 1;  ///< 1: one kernel does it all
  constexpr RowBlocks(long rows, long n) {
    if (rows * n <= 256 * 1024) return;  // the second kernel would cost more than the strided reads
    const long most = (rows + 31) / 32, wanted = (1L << 17) / n;
    blocks = most < wanted ? most : wanted;
    blocks = blocks < 2 ? 2 : blocks > 1024 ? 1024 : blocks;
  }
};
/// Bytes of scratch memory that a chain over (rows, n) samples takes for its sums.
template <class Sample> constexpr std::size_t chain_workspace(long rows, long n) {
  const long blocks = RowBlocks(rows, n).blocks;
  return blocks == 1 ? 0 : static_cast<std::size_t>(blocks * n) * sizeof(kernel::Wide<Sample>);
}

template <> struct ChainKernels<Cuda> {
  template <int N, class Chain, class Sample, class Scalar>
  static void chain_and_sum(long rows, const Sample* dy, const Sample* y, Sample* g, Scalar* sums, bool accumulate) {
    const kernel::Chained<Chain, Sample> value{dy, y, g};
    if (sums) return column_sums<N, Sample>(rows, value, sums, accumulate);
    skein::cuda::for_each(rows * N, kernel::EachValue<N, kernel::Chained<Chain, Sample>>{value});
  }
  /// sums (+)= the sums over rows of value(r * row_pitch(N) + j).
  template <int N, class Sample, class Value, class Scalar>
  static void column_sums(long rows, Value value, Scalar* sums, bool accumulate) {
    using Sum = kernel::Wide<Sample>;
    const long blocks = RowBlocks(rows, N).blocks;
    if (blocks == 1)
      return skein::cuda::for_each_row(long(N), kernel::WholeColumn<N, Value, Sum, Scalar>{value, rows, sums, accumulate});
    auto* partial = static_cast<Sum*>(skein::cuda::workspace().get(chain_workspace<Sample>(rows, N)));
    skein::cuda::for_each(blocks * N, kernel::ColumnPart<N, Value, Sum>{value, rows, blocks, partial});
    skein::cuda::for_each_row(long(N), kernel::ColumnWhole<N, Sum, Scalar>{partial, blocks, sums, accumulate});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
