// SPDX-License-Identifier: Apache-2.0
// Two sums over the rows of a dense matrix for each of its columns, in double: gradients of biases, moments and gradients of
// batch normalisation. Two kernels: tiles of neighbouring columns by a block of rows, whose threads read whole rows side by side,
// 16 bytes of each array a thread where they are aligned, and add up what they have through shared memory; then, a warp a column,
// the sum of the blocks. No atomics: the cut is a function of the shape alone, so the bits are the same in every run.
//
//     r a row, c a column, b a block of rows, k one of a thread's columns or rows
#pragma once
#include <algorithm>

#include "../../core/half.hpp"
#include "../../device/cuda/launch_blocks.hpp"
#include "../../device/cuda/plain_kernels.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Two sums that are taken in one pass.
struct TwoSums {
  double first = 0, second = 0;
  friend constexpr TwoSums operator+(const TwoSums& a, const TwoSums& b) { return {a.first + b.first, a.second + b.second}; }
};

/// Two sums in float, for a run of a few rows.
struct TwoFloats {
  float first = 0, second = 0;
};
/// What a term adds a run of a few rows up in: products of 16-bit values are exact in float, and converting each to double would
/// cost more than reading it.
template <class Value> using RunSums = std::conditional_t<is_half<Value>, TwoFloats, TwoSums>;

/// How a matrix is cut: `across` packs of columns a tile, blocks of rows. A function of the shape alone.
struct ColumnCut {
  static constexpr int threads = 256, ahead = 4;  // of a block; rows that a thread has under way
  int across;
  long tiles, blocks;
  /// Rows that a block's threads read at a time.
  constexpr int down() const { return threads / across; }
  /// At most 32 packs of `columns` a tile, at least `ahead` rows a thread, and not more blocks than keep a large GPU busy.
  static constexpr ColumnCut of(long rows, long width, int columns) {
    const long groups = width > columns ? (width + columns - 1) / columns : 1, tiles = (groups + 31) / 32;
    ColumnCut cut{static_cast<int>((groups + tiles - 1) / tiles), tiles, 1};
    const long least = 1L * ahead * cut.down(), most = (rows + least - 1) / least, wanted = tiles < 1024 ? 1024 / tiles : 1;
    cut.blocks = most < 1 ? 1 : most < wanted ? most : wanted;
    return cut;
  }
};

namespace kernel {

struct AddTwoSums {
  constexpr TwoSums operator()(const TwoSums& a, const TwoSums& b) const { return a + b; }
};

/// The terms of a block of rows of one column: the plain kernel.
template <class Term> struct ColumnBlock {
  Term term;
  long rows, width, blocks;
  TwoSums* partial;  // (width, blocks)
  constexpr void operator()(long i) const {
    const long b = i / width, c = i - b * width, end = rows * (b + 1) / blocks;
    TwoSums sums[1];
    for (long r = rows * b / blocks; r < end; ++r)
      term.template add<1>(r * width + c, c, term.template load<1>(r * width + c), sums);
    partial[c * blocks + b] = sums[0];
  }
};

/// The terms of a block of rows of a tile of columns, Width of them a thread.
template <class Term, int Width> struct ColumnTile {
  static constexpr int threads = ColumnCut::threads;
  struct Own {};
  Term term;
  long rows, width;
  ColumnCut cut;
  TwoSums* partial;  // (width, blocks)

  SKEIN_HOST_DEVICE int steps() const { return 2; }
  std::size_t shared_bytes() const { return sizeof(TwoSums) * threads * Width; }
  SKEIN_HOST_DEVICE void operator()(int step, long index, int thread, Own&, void* shared) const {
    const long block = index / cut.tiles, tile = index - block * cut.tiles;
    auto* all = static_cast<TwoSums*>(shared);
    if (step == 0) gather(block, tile, thread, all + thread * Width);
    else finish(block, tile, thread, all);
  }

 private:
  using Run = typename Term::Run;
  static constexpr int ahead = ColumnCut::ahead;

  SKEIN_HOST_DEVICE void gather(long block, long tile, int thread, TwoSums* to) const {
    const int down = cut.down(), row = thread / cut.across;
    const long c = (tile * cut.across + (thread - row * cut.across)) * Width, end = rows * (block + 1) / cut.blocks;
    TwoSums sums[Width];
    if (row < down && c < width) {
      long r = rows * block / cut.blocks + row;
      for (; r + (ahead - 1) * down < end; r += ahead * down) {
        decltype(term.template load<Width>(0L)) in[ahead];  // before the first is added: a term may write where others read
        for (int k = 0; k < ahead; ++k) in[k] = term.template load<Width>((r + k * down) * width + c);
        Run run[Width];
        for (int k = 0; k < ahead; ++k) term.template add<Width>((r + k * down) * width + c, c, in[k], run);
        add(run, sums);
      }
      for (; r < end; r += down) {
        Run run[Width];
        term.template add<Width>(r * width + c, c, term.template load<Width>(r * width + c), run);
        add(run, sums);
      }
    }
    for (int k = 0; k < Width; ++k) to[k] = sums[k];
  }
  SKEIN_HOST_DEVICE static void add(const Run* run, TwoSums* sums) {
    for (int k = 0; k < Width; ++k) {
      sums[k].first += static_cast<double>(run[k].first);
      sums[k].second += static_cast<double>(run[k].second);
    }
  }
  SKEIN_HOST_DEVICE void finish(long block, long tile, int thread, const TwoSums* all) const {
    const int columns = cut.across * Width, down = cut.down();
    for (int at = thread; at < columns; at += threads) {
      const long c = tile * columns + at;
      if (c >= width) continue;
      TwoSums sums;
      for (int row = 0; row < down; ++row) sums = sums + all[row * columns + at];
      partial[c * cut.blocks + block] = sums;
    }
  }
};

/// finish(c, sums) once a column.
template <class Finish> struct ColumnTotal {
  const TwoSums* partial;
  long blocks;
  Finish finish;
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long c, Lanes lanes) const {
    constexpr long lane = Lanes::count;
    TwoSums sums[4];  // four loads under way
    long b = lanes.index;
    for (; b + 3 * lane < blocks; b += 4 * lane)
      for (int k = 0; k < 4; ++k) sums[k] = sums[k] + partial[c * blocks + b + k * lane];
    for (; b < blocks; b += lane) sums[0] = sums[0] + partial[c * blocks + b];
    const TwoSums all = lanes.reduce((sums[0] + sums[1]) + (sums[2] + sums[3]), AddTwoSums{});
    if (lanes.index == 0) finish(c, all);
  }
};

}  // namespace kernel

/// Blocks of rows of the plain kernel: at least 16 rows each, and not more threads than keep a large GPU busy.
constexpr long column_blocks(long rows, long width) {
  const long most = (rows + 15) / 16, wanted = width > 0 ? (1L << 17) / width : 1, cap = most < wanted ? most : wanted;
  return cap < 1 ? 1 : cap > 1024 ? 1024 : cap;
}
/// What column_sums wants of scratch memory, however many columns a thread takes.
constexpr std::size_t column_sums_bytes(long rows, long width) {
  long most = column_blocks(rows, width);
  for (const int columns : {1, 2, 4, 8}) most = std::max(most, ColumnCut::of(rows, width, columns).blocks);
  return static_cast<std::size_t>(width * most) * sizeof(TwoSums);
}

/// Sums over the rows for each column, and what a term likes to write. Term: `load<W>(i)` reads W elements at i = r * width + c,
/// `add<W>(i, c, loaded, sums)` adds to W sums, which are Term::Run of a few rows or TwoSums; Term::widest is how many elements
/// are 16 bytes, aligned() whether its arrays are. finish(c, sums) takes them. scratch: column_sums_bytes(rows, width) of device
/// memory. No rows: the sums are zero.
template <class Term, class Finish> void column_sums(long rows, long width, void* scratch, Term term, Finish finish) {
  auto* partial = static_cast<TwoSums*>(scratch);
  long blocks = column_blocks(rows, width);
  if (skein::cuda::plain_kernels()) {
    skein::cuda::for_each(width * blocks, kernel::ColumnBlock<Term>{term, rows, width, blocks, partial});
  } else {
    const bool packs = Term::widest > 1 && width % Term::widest == 0 && term.aligned();
    const ColumnCut cut = ColumnCut::of(rows, width, packs ? Term::widest : 1);
    blocks = cut.blocks;
    if (packs)
      skein::cuda::for_each_block(cut.tiles * blocks, kernel::ColumnTile<Term, Term::widest>{term, rows, width, cut, partial});
    else skein::cuda::for_each_block(cut.tiles * blocks, kernel::ColumnTile<Term, 1>{term, rows, width, cut, partial});
  }
  skein::cuda::for_each_row(width, kernel::ColumnTotal<Finish>{partial, blocks, finish});
}

}  // namespace skein::inline SKEIN_ABI::ops
