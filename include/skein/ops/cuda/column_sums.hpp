// SPDX-License-Identifier: Apache-2.0
// Two sums over the rows of a dense matrix for each of its columns, in double: gradients of biases, moments and gradients of
// batch normalisation. Two kernels: blocks of rows, neighbouring threads on neighbouring columns, 16 bytes of each array a thread
// where they are aligned; then, a warp a column, the sum of the blocks. No atomics: the cut is a function of the shape alone, so
// the bits are the same in every run.
#pragma once
#include <algorithm>

#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"

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

/// The terms of a block of rows of Width neighbouring columns; Ahead rows are loaded before the first is added, since a term may
/// write where others read. Width 1, Ahead 1 is the plain kernel.
template <class Term, int Width, int Ahead> struct ColumnBlock {
  Term term;
  long rows, width, blocks;
  TwoSums* partial;  // (width, blocks)
  constexpr void operator()(long i) const {
    const long groups = width / Width, b = i / groups, c = (i - b * groups) * Width, end = rows * (b + 1) / blocks;
    TwoSums sums[Width];
    long r = rows * b / blocks;
    for (; r + Ahead <= end; r += Ahead) {
      decltype(term.template load<Width>(0L)) in[Ahead];
      for (int k = 0; k < Ahead; ++k) in[k] = term.template load<Width>((r + k) * width + c);
      for (int k = 0; k < Ahead; ++k) term.template add<Width>((r + k) * width + c, c, in[k], sums);
    }
    for (; r < end; ++r) term.template add<Width>(r * width + c, c, term.template load<Width>(r * width + c), sums);
    for (int k = 0; k < Width; ++k) partial[(c + k) * blocks + b] = sums[k];
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

/// Blocks of rows, where a thread takes so many columns: at least 16 rows each (64 of packs, so that the blocks' sums are few
/// beside what is read), and not more threads than keep a large GPU busy.
constexpr long column_blocks(long rows, long width, int columns = 1) {
  const long least = columns > 1 ? 64 : 16, cap = columns > 1 ? 2048 : 1024, groups = width / columns > 0 ? width / columns : 1;
  const long most = (rows + least - 1) / least, wanted = (1L << 17) / groups;
  const long blocks = most < wanted ? most : wanted;
  return blocks < 1 ? 1 : blocks > cap ? cap : blocks;
}
/// What column_sums wants of scratch memory, however many columns a thread takes.
constexpr std::size_t column_sums_bytes(long rows, long width) {
  long most = 0;
  for (const int columns : {1, 2, 4, 8}) most = std::max(most, column_blocks(rows, width, columns));
  return static_cast<std::size_t>(width * most) * sizeof(TwoSums);
}

/// Sums over the rows for each column, and what a term likes to write. Term: `load<W>(i)` reads W elements at i = r * width + c,
/// `add<W>(i, c, loaded, sums)` adds to the W sums; Term::widest is how many elements are 16 bytes, aligned() whether its arrays
/// are. finish(c, sums) takes them. scratch: column_sums_bytes(rows, width) of device memory. No rows: the sums are zero.
template <class Term, class Finish> void column_sums(long rows, long width, void* scratch, Term term, Finish finish) {
  auto* partial = static_cast<TwoSums*>(scratch);
  const bool packs = Term::widest > 1 && width % Term::widest == 0 && term.aligned() && !skein::cuda::plain_kernels();
  const long blocks = column_blocks(rows, width, packs ? Term::widest : 1);
  if (packs)
    skein::cuda::for_each(width / Term::widest * blocks,
                          kernel::ColumnBlock<Term, Term::widest, 4>{term, rows, width, blocks, partial});
  else skein::cuda::for_each(width * blocks, kernel::ColumnBlock<Term, 1, 1>{term, rows, width, blocks, partial});
  skein::cuda::for_each_row(width, kernel::ColumnTotal<Finish>{partial, blocks, finish});
}

}  // namespace skein::inline SKEIN_ABI::ops
