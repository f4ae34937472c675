// SPDX-License-Identifier: Apache-2.0
// Two sums over the rows of a dense matrix for each of its columns, in double: gradients of biases, moments and gradients of
// batch normalisation. Two kernels: blocks of rows, neighbouring threads on neighbouring columns; then, a warp a column, the sum
// of the blocks. No atomics: the cut is a function of the shape alone, so the bits are the same in every run.
#pragma once
#include "../../device/cuda/launch.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Two sums that are taken in one pass.
struct TwoSums {
  double first = 0, second = 0;
  friend constexpr TwoSums operator+(const TwoSums& a, const TwoSums& b) { return {a.first + b.first, a.second + b.second}; }
};

namespace kernel {

/// The column of element i; a 32-bit division, several times cheaper, where the index allows.
constexpr long column_of(long i, long width) {
  return i <= 0xffffffffL ? static_cast<long>(static_cast<unsigned>(i) % static_cast<unsigned>(width)) : i % width;
}

struct AddTwoSums {
  constexpr TwoSums operator()(const TwoSums& a, const TwoSums& b) const { return a + b; }
};

/// f.term(i, c, sums) for each element i of column c in a block of rows.
template <class Term> struct ColumnBlock {
  Term term;
  long rows, width, blocks;
  TwoSums* partial;  // (width, blocks)
  constexpr void operator()(long i) const {
    const long b = i / width, c = i - b * width, end = rows * (b + 1) / blocks;
    TwoSums sums;
    for (long r = rows * b / blocks; r < end; ++r) term(r * width + c, c, sums);
    partial[c * blocks + b] = sums;
  }
};

/// finish(c, sums) once a column.
template <class Finish> struct ColumnTotal {
  const TwoSums* partial;
  long blocks;
  Finish finish;
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long c, Lanes lanes) const {
    TwoSums sums;
    for (long b = lanes.index; b < blocks; b += Lanes::count) sums = sums + partial[c * blocks + b];
    sums = lanes.reduce(sums, AddTwoSums{});
    if (lanes.index == 0) finish(c, sums);
  }
};

}  // namespace kernel

/// Blocks of rows: at least 16 rows each, and not more threads than keep a large GPU busy.
constexpr long column_blocks(long rows, long width) {
  const long most = (rows + 15) / 16, wanted = (1L << 17) / width;
  const long blocks = most < wanted ? most : wanted;
  return blocks < 1 ? 1 : blocks > 1024 ? 1024 : blocks;
}
/// What column_sums wants of scratch memory.
constexpr std::size_t column_sums_bytes(long rows, long width) {
  return static_cast<std::size_t>(width * column_blocks(rows, width)) * sizeof(TwoSums);
}

/// term(i, c, sums) adds element i = r * width + c to two sums (and may write what it likes at i); finish(c, sums) takes them.
/// scratch: column_sums_bytes(rows, width) of device memory. No rows: the sums are zero.
template <class Term, class Finish> void column_sums(long rows, long width, void* scratch, Term term, Finish finish) {
  const long blocks = column_blocks(rows, width);
  auto* partial = static_cast<TwoSums*>(scratch);
  skein::cuda::for_each(width * blocks, kernel::ColumnBlock<Term>{term, rows, width, blocks, partial});
  skein::cuda::for_each_row(width, kernel::ColumnTotal<Finish>{partial, blocks, finish});
}

}  // namespace skein::inline SKEIN_ABI::ops
