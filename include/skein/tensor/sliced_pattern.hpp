// SPDX-License-Identifier: Apache-2.0
// SlicedPattern: a sparse pattern on the host, laid out for products with vectors: 16 rows by 31 columns are a tile, whose
// entries of all rows are looked up together in two registers that hold the tile's part of the vector. For matrices that are
// dense enough (a few percent); what does not fit into a tile's steps stays in compressed rows. A cousin of SELL-C (Kreutzer et
// al., SIAM J. Sci. Comput. 36, 2014) and of HYB.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sparse.hpp"

namespace skein::inline SKEIN_ABI {

/// Made of a pattern once, multiplied often: mv of ops/sliced_product.hpp. Takes 16 bytes a step and tile. Immutable; it moves.
class SlicedPattern {
 public:
  static constexpr int lanes = 16, width = 31, most_steps = 4;
  /// An entry of a tile: a column of its strip, or `none`.
  static constexpr std::uint8_t none = width;

  /// No rows, no columns.
  SlicedPattern() = default;
  /// What is moved from has no rows and no columns.
  SlicedPattern(SlicedPattern&& o) noexcept
      : size_(std::exchange(o.size_, Size{})), tiles_(std::move(o.tiles_)), rest_(std::move(o.rest_)) {}
  SlicedPattern& operator=(SlicedPattern&& o) noexcept {
    std::swap(size_, o.size_);
    std::swap(tiles_, o.tiles_);
    rest_ = std::move(o.rest_);  // which exchanges them
    return *this;
  }
  /// `steps`: entries of a row that a tile holds, 0 to most_steps; -1: as many as cost least, 0 where this processor has no such
  /// lookups. Throws ArgumentError for other numbers.
  template <class Index> explicit SlicedPattern(const Csr<void, Cpu, Index>& a, int steps = -1)
      : size_{a.rows(), a.columns(), a.entries(), (a.columns() + width - 1) / width} {
    if (steps < -1 || steps > most_steps)
      throw ArgumentError(text("SlicedPattern: {} steps: from 0 to {}, or -1 for as many as cost least", steps, most_steps));
    size_.steps = steps >= 0 ? steps : best_steps(a);
    const long slices = (size_.rows + lanes - 1) / lanes;
    tiles_.assign(static_cast<std::size_t>(slices * size_.strips * size_.steps * lanes), none);
    std::vector<std::int32_t> rows, columns;
    each(a, [&](long row, long strip, long place, long column) {
      if (place < size_.steps) {
        const long step = (row / lanes * size_.strips + strip) * size_.steps + place;
        tiles_[static_cast<std::size_t>(step * lanes + row % lanes)] = static_cast<std::uint8_t>(column - strip * width);
      } else {
        rows.push_back(static_cast<std::int32_t>(row));
        columns.push_back(static_cast<std::int32_t>(column));
      }
    });
    rest_ = Csr<void>::from_triples(size_.rows, size_.columns, rows, columns);
  }

  long rows() const { return size_.rows; }
  long columns() const { return size_.columns; }
  long entries() const { return size_.entries; }
  int steps() const { return size_.steps; }
  long strips() const { return size_.strips; }
  /// Those of a slice of 16 rows, strip after strip: (strips, steps, lanes).
  const std::uint8_t* tiles(long slice) const { return tiles_.data() + slice * strips() * steps() * lanes; }
  /// What the tiles do not hold.
  CsrView<void> rest() const& { return rest_.view(); }
  void rest() const&& = delete;  // it would be gone
  /// Does a lookup of 16 values in two registers take one instruction here.
  static constexpr bool looks_up =
#if defined(__AVX512F__) && defined(__AVX512BW__)
      true;
#else
      false;
#endif

 private:
  struct Size {
    long rows = 0, columns = 0, entries = 0, strips = 0;
    int steps = 0;
  };

  /// f(row, strip, how many entries of the row and strip come before, column), in order.
  template <class Index, class F> static void each(const Csr<void, Cpu, Index>& a, F&& f) {
    for (long i = 0; i < a.rows(); ++i) {
      long strip = -1, place = 0;
      for (long k = a.offsets().data[i]; k < static_cast<long>(a.offsets().data[i + 1]); ++k) {
        const long column = static_cast<long>(a.indices().data[k]);
        place = column / width == strip ? place + 1 : 0;
        strip = column / width;
        f(i, strip, place, column);
      }
    }
  }
  /// A step of a tile costs as much as 1.6 entries in compressed rows (measured on Zen 4).
  template <class Index> int best_steps(const Csr<void, Cpu, Index>& a) const {
    if (!looks_up) return 0;
    std::array<long, most_steps + 1> rest{};  // entries that are left with so many steps
    each(a, [&](long, long, long place, long) {
      for (int k = 0; k <= most_steps; ++k) rest[static_cast<std::size_t>(k)] += place >= k;
    });
    const double tiles = static_cast<double>((rows() + lanes - 1) / lanes) * static_cast<double>(strips());
    int best = 0;
    for (int k = 1; k <= most_steps; ++k)
      if (cost(k, tiles, rest) < cost(best, tiles, rest)) best = k;
    return best;
  }
  static double cost(int k, double tiles, const std::array<long, most_steps + 1>& rest) {
    return 1.6 * k * tiles + static_cast<double>(rest[static_cast<std::size_t>(k)]);
  }

  Size size_;
  std::vector<std::uint8_t> tiles_;
  Csr<void> rest_;
};

}  // namespace skein::inline SKEIN_ABI
