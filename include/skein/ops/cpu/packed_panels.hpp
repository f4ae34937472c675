// SPDX-License-Identifier: Apache-2.0
// The three products of rows with a weight that does not stay in the caches, of sizes known at run time: the weight lies in
// panels as wide as a tile of registers, packed after every change, and the rows go by in blocks. Goto and van de Geijn, ACM TOMS
// 2008.
//
//     m rows of A and C, k columns of A and rows of B; lda, ldb, ldc scalars from row to row of A, B, C;
//     a, b, c the matrices, g the gradient of C, r the first row of a block; p a product, V a vector of Scalar
#pragma once
#include <algorithm>
#include <cstdint>

#include "../dense_types.hpp"
#include "tile.hpp"
#include "transpose.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The most rows that a gradient of weights adds up at a time.
inline constexpr long most_gradient_rows = 512;
/// Scalars that PackedPanels::add_weight_gradient() works in: a block of rows transposed, and a panel of another.
constexpr long weight_gradient_room(long in) { return most_gradient_rows * (in + 96); }

#if SKEIN_WITH_XSIMD

/// What the next tiles need, fetched into the second-level cache a few lines at a time while one is computed: rows of A, rows of
/// C, and rows of an array that is packed next, all spread over the tiles of a panel. Null pointers are not fetched.
template <class Scalar> struct FetchNext {
  static constexpr long ahead = 10, line = 64 / static_cast<long>(sizeof(Scalar));  // rows, values
  const Scalar* a = nullptr;
  long lda = 0;
  const Scalar* c = nullptr;
  long ldc = 0, columns = 0, tile_rows = 0;
  const Scalar* next = nullptr;
  long next_pitch = 0, next_rows = 0;

  /// At value k of `depth`, a multiple of a line, of the tile that has `rows` rows from `first` on.
  SKEIN_ALWAYS_INLINE void at(long k, long depth, long first, int rows) const {
    const long step = k / line;
    for (int r = 0; a && r < rows; ++r) __builtin_prefetch(a + (first + ahead + r) * lda + k, 0, 2);
    if (c && step < rows) fetch_row(c + (first + rows + step) * ldc);
    if (!next) return;
    for (long i = first * next_rows / tile_rows + step; i < (first + rows) * next_rows / tile_rows; i += depth / line)
      fetch_row(next + i * next_pitch);
  }

 private:
  SKEIN_ALWAYS_INLINE void fetch_row(const Scalar* from) const {
    for (long j = 0; j < columns; j += line) __builtin_prefetch(from + j, 0, 2);
  }
};

/// A (depth, columns) matrix in panels; both are multiples of 16, and columns are 64 or more. Blocks of blocking.depth rows
/// follow each other, in each the panels, in each its rows.
template <class Scalar> class PackedPanels {
 public:
  constexpr PackedPanels(long depth, long columns) : depth_(depth), columns_(columns) {}

  /// Writes depth * columns values. b: (depth, columns), rows `pitch` apart.
  void pack(const Scalar* b, long pitch, Scalar* to) const {
    each_panel([&](long begin, long end, long first, long width) {
      for (long k = begin; k < end; ++k, to += width) std::copy_n(b + k * pitch + first, width, to);
    });
  }
  /// Packs the transposed matrix: b is (columns, depth), rows `pitch` apart.
  void pack_transposed(const Scalar* b, long pitch, Scalar* to) const {
    each_panel([&](long begin, long end, long first, long width) {
      transpose(width, 0L, end - begin, b + first * pitch + begin, pitch, to, width);
      to += (end - begin) * width;
    });
  }
  /// Is an array of so many values, which a product writes, too large to stay in the caches until it is read? Then stores past
  /// them are faster; but for rows of few lines.
  bool streams_to(const Scalar* c, long values) const {
    return columns_ > 64 && depth_ <= blocking.depth && values * static_cast<long>(sizeof(Scalar)) > blocking.streamed_bytes &&
           reinterpret_cast<std::uintptr_t>(c) % 64 == 0;
  }
  /// c = a b + bias, for a of (rows, depth) and c of (rows, columns), dense; a null bias is zero. streams: as streams_to() says
  /// of the whole array; end_streams() is the caller's. read_next: an array like c that is read behind the product, or null.
  /// adds: to what c holds, in place of the bias.
  void multiply(long rows, const Scalar* a, const Scalar* packed, const Scalar* bias, Scalar* c, bool streams,
                const Scalar* read_next = nullptr, bool adds = false) const {
    constexpr long whole = blocking.whole_rows;
    const long blocks = (rows + blocking.rows - 1) / blocking.rows,
               each = blocks > 0 ? ((rows + blocks - 1) / blocks + whole - 1) / whole * whole : 0;
    for (long r = 0; r < rows; r += each) {
      const Scalar* panel_begin = packed;
      each_panel([&](long begin, long end, long first, long width) {
        Product<Scalar> p{.m = std::min(each, rows - r), .k = end - begin, .a = a + r * depth_ + begin, .lda = depth_};
        p.b = panel_begin;
        p.ldb = width;
        p.c = c + r * columns_ + first;
        p.ldc = columns_;
        const bool goes_on = adds || begin > 0;
        p.start = goes_on ? p.c : bias ? bias + first : nullptr;
        p.start_pitch = goes_on ? columns_ : 0;
        FetchNext<Scalar> fetch{
            .a = first < 2 * widest ? p.a : nullptr, .lda = depth_, .c = streams ? nullptr : p.c, .ldc = columns_};
        fetch.columns = width;
        fetch.tile_rows = fetch.next_rows = p.m;
        if (read_next && begin == 0) fetch.next = read_next + r * columns_ + first;
        fetch.next_pitch = columns_;
        streams ? run<KeepByStream>(p, fetch) : run<Keep>(p, fetch);
        panel_begin += p.k * width;
      });
    }
  }

  /// dw += a^T g over `rows` rows, for a of (rows, in), g of (rows, out), dense, and dw of (in, out), rows `pitch` apart; in and
  /// out as depth and columns. In `room`, weight_gradient_room(in) scalars, a is transposed and g packed by blocks of rows.
  static void add_weight_gradient(long rows, long in, long out, const Scalar* a, const Scalar* g, Scalar* room, Scalar* dw,
                                  long pitch) {
    constexpr long together = blocking.gradient_rows;
    static_assert(together <= most_gradient_rows && together <= blocking.depth);
    const long blocks = (rows + together - 1) / together, each = blocks > 0 ? whole_line((rows + blocks - 1) / blocks) : 0;
    Scalar* const panel_room = room + most_gradient_rows * in;
    for (long r = 0; r < rows; r += each) {
      const long count = std::min(each, rows - r), depth = whole_line(count);
      transpose(count, 0L, in, a + r * in, in, room, depth);
      for (long i = 0; count < depth && i < in; ++i) std::fill(room + i * depth + count, room + (i + 1) * depth, Scalar(0));
      PackedPanels(depth, out).each_panel([&](long, long, long first, long width) {
        const Scalar* from = g + r * out + first;
        for (long k = 0; k < count; ++k) std::copy_n(from + k * out, width, panel_room + k * width);
        std::fill(panel_room + count * width, panel_room + depth * width, Scalar(0));
        Product<Scalar> p{
            .m = in, .k = depth, .a = room, .lda = depth, .b = panel_room, .ldb = width, .c = dw + first, .ldc = pitch};
        p.start = p.c;
        p.start_pitch = pitch;
        FetchNext<Scalar> fetch{.a = room, .lda = depth, .c = p.c, .ldc = pitch, .columns = width, .tile_rows = in};
        if (first + width < out) fetch.next = from + width;
        fetch.next_pitch = out;
        fetch.next_rows = count;
        run<Keep>(p, fetch);
      });
    }
  }

 private:
  static constexpr int lanes = widest_lanes<Scalar>;
  static constexpr long widest = 1L * lanes * detail::widest_tile;

  /// visit(begin, end, first column, columns) for each panel of each block of rows [begin, end), in the order of their memory.
  template <class Visit> void each_panel(Visit visit) const {
    const long vectors = columns_ / lanes, panels = (vectors + detail::widest_tile - 1) / detail::widest_tile;
    for (long begin = 0; begin < depth_; begin += blocking.depth)
      for (long i = 0, first = 0; i < panels; ++i) {
        const long width = (vectors / panels + (i < vectors % panels ? 1 : 0)) * lanes;
        visit(begin, std::min(depth_, begin + blocking.depth), first, width);
        first += width;
      }
  }
  template <class Finish> static void run(const Product<Scalar>& p, const FetchNext<Scalar>& fetch) {
    using V = Vector<Scalar, lanes>;
    const long vectors = fetch.columns / lanes;
    if constexpr (detail::widest_tile > 3) {
      if (vectors == 5) return panel<V, 5, false, false, Finish>(p, fetch);
      if (vectors == 4) return panel<V, 4, false, false, Finish>(p, fetch);
    } else if (vectors == 2) {
      return panel<V, 2, false, false, Finish>(p, fetch);
    }
    panel<V, 3, false, false, Finish>(p, fetch);
  }

  long depth_, columns_;
};

// Panels of float: see SKEIN_PANELS_OF_FLOAT.
#define SKEIN_PACKED_PANELS(word, columns)                                                                             \
  word template void panel<detail::WholeVector, columns, false, false, Keep>(const Product<float>&, FetchNext<float>); \
  word template void panel<detail::WholeVector, columns, false, false, KeepByStream>(const Product<float>&, FetchNext<float>);
#if defined(__AVX512F__)
#define SKEIN_PACKED_PANELS_OF_FLOAT(word) \
  SKEIN_PACKED_PANELS(word, 5)             \
  SKEIN_PACKED_PANELS(word, 4)             \
  SKEIN_PACKED_PANELS(word, 3)
#else
#define SKEIN_PACKED_PANELS_OF_FLOAT(word) \
  SKEIN_PACKED_PANELS(word, 3)             \
  SKEIN_PACKED_PANELS(word, 2)
#endif
#if SKEIN_COMPILED
SKEIN_PACKED_PANELS_OF_FLOAT(extern)
#endif
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
