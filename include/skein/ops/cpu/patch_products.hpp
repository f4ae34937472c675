// SPDX-License-Identifier: Apache-2.0
// Sums of products of a convolution's patches, without the patches. Values of two places k, k' of the window meet the same pairs
// of pixels whenever k' - k is the same, but for pixels near the border: so there is one sum a difference, 13 in place of 45 for
// a window of 3 x 3, and small sums over the border that are subtracted. For stride 1.
//
//     g the geometry; a, b the values whose products are summed; r a row of a sum, p a pixel, kx, ky a place of the window, k
//     both in one number; V a vector of Scalar
#pragma once
#include <algorithm>

#include "../reference/conv2d.hpp"
#include "tile.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// Pixels of several images, each with all its channels, in a copy that has gaps of zeros between rows and images: scalars from
/// one to the next.
struct PixelRuns {
  long images = 0, image_pitch = 0, rows = 0, row_pitch = 0, pixels = 0;
};

namespace detail {
/// to (4, Columns vectors) += the sum over the pixels of 4 values a by the vectors at b.
template <class V, int Columns, class Scalar>
SKEIN_NOINLINE void add_pixels(const PixelRuns& runs, long channels, const Scalar* a, const Scalar* b, Scalar* to, long pitch) {
  constexpr int lanes = static_cast<int>(V::size), rows = 4;
  V sum[rows][Columns];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) sum[r][j] = load_from<V>(to + r * pitch + j * lanes);
  for (long image = 0; image < runs.images; ++image)
    for (long row = 0; row < runs.rows; ++row) {
      const Scalar *from_a = a + image * runs.image_pitch + row * runs.row_pitch, *from_b = b + (from_a - a);
      for (long p = 0; p < runs.pixels; ++p, from_a += channels, from_b += channels) {
        V value[Columns];
#pragma GCC unroll 16
        for (int j = 0; j < Columns; ++j) {
          value[j] = load_from<V>(from_b + j * lanes);
          keep(value[j]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          const V factor(from_a[r]);
#pragma GCC unroll 16
          for (int j = 0; j < Columns; ++j) sum[r][j] = fused(factor, value[j], sum[r][j]);
        }
      }
    }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) store_to(to + r * pitch + j * lanes, sum[r][j]);
}
/// to (channels, columns) += the sum over the pixels of the values at a by those at b.
template <class V, class Scalar> void add_pixel_products(const PixelRuns& runs, long channels, const Scalar* a, const Scalar* b,
                                                         long columns, Scalar* to, long pitch) {
  constexpr long lanes = static_cast<long>(V::size);
  const long vectors = columns / lanes, panels = (vectors + widest_tile - 1) / widest_tile;
  for (long panel = 0, v = 0; panel < panels; ++panel) {
    const long width = vectors / panels + (panel < vectors % panels);
    for (long i = 0; i < channels; i += 4) {
      const Scalar *from_a = a + i, *from_b = b + v * lanes;
      Scalar* const corner = to + i * pitch + v * lanes;
      if (width == 1) add_pixels<V, 1>(runs, channels, from_a, from_b, corner, pitch);
      else if (width == 2) add_pixels<V, 2>(runs, channels, from_a, from_b, corner, pitch);
      else if (width == 3) add_pixels<V, 3>(runs, channels, from_a, from_b, corner, pitch);
      if constexpr (widest_tile > 3) {
        if (width == 4) add_pixels<V, 4>(runs, channels, from_a, from_b, corner, pitch);
        else if (width == 5) add_pixels<V, 5>(runs, channels, from_a, from_b, corner, pitch);
      }
    }
    v += width;
  }
}
}  // namespace detail

/// The sums of one convolution. Its memory is the caller's: room() scalars.
template <class Scalar> class PatchProducts {
 public:
  static constexpr long lanes = widest_lanes<Scalar>;

  explicit PatchProducts(const Conv2dGeometry& g) : g_(g) {}

  /// Is there a kernel for this convolution, and less work than with patches?
  bool possible() const {
    return g_.dimensions == 2 && g_.stride == 1 && g_.dilation == 1 && g_.groups == 1 && g_.kernel > 1 &&
           g_.channels % lanes == 0 && g_.channels % 4 == 0 &&
           multiplications() < g_.out_height() * g_.out_width() * g_.weight_rows() * (g_.weight_rows() + 1) / 2;
  }
  long room() const { return sums() + together() * image_pitch() + tail(); }

  /// to, the lower triangle of (weight_rows, weight_rows), its rows `pitch` apart, += factor * the sum over all patches of the
  /// images x (batch, height, width, channels) of a patch by itself.
  void add(const Scalar* x, long batch, Scalar factor, Scalar* room, Scalar* to, long pitch) const {
    std::fill_n(room, this->room(), Scalar(0));
    Scalar* const copy = room + sums();
    for (long n = 0; n < batch; n += together()) {
      const long images = std::min(together(), batch - n);
      for (long i = 0; i < images; ++i)
        for (long row = 0; row < g_.height; ++row)
          std::copy_n(x + ((n + i) * g_.height + row) * g_.width * g_.channels, 1L * g_.width * g_.channels,
                      copy + i * image_pitch() + row * row_pitch());
      for (int ky = -1; ky < g_.kernel; ++ky)
        for (int kx = -1; kx < g_.kernel; ++kx) add_part(copy, images, ky, kx, room + part(ky, kx));
    }
    collect(room, factor, to, pitch);
  }

 private:
  struct Range {
    long begin, end;
    long size() const { return end - begin; }
  };
  /// Rows (or columns) of the image that place k of the window never sees; -1: all.
  Range unseen(int k, long size, long out) const {
    if (k < 0) return {0, size};
    const long first = k - g_.padding, last = first + out;
    if (first > 0) return {0, std::min(first, size)};
    return {std::clamp(last, 0L, size), size};
  }
  /// One range each suffices: a place sees all that is above, or all that is below.
  bool one_sided() const {
    for (int k = 0; k < g_.kernel; ++k)
      if ((k > g_.padding && k - g_.padding + g_.out_height() < g_.height) ||
          (k > g_.padding && k - g_.padding + g_.out_width() < g_.width))
        return false;
    return true;
  }
  long multiplications() const {
    if (!one_sided()) return 1L << 60;
    long pixels = 0;
    for (int ky = -1; ky < g_.kernel; ++ky)
      for (int kx = -1; kx < g_.kernel; ++kx)
        pixels += unseen(ky, g_.height, g_.out_height()).size() * unseen(kx, g_.width, g_.out_width()).size();
    return pixels * g_.channels * columns();
  }

  // Differences (down, across), row by row: (0, 0 to K - 1), then (down, -(K - 1) to K - 1). A sum is (channels, all of them by
  // channels).
  long difference(int down, int across) const {
    return down == 0 ? across : g_.kernel + (down - 1) * (2 * g_.kernel - 1) + across + g_.kernel - 1;
  }
  long columns() const { return (g_.kernel + (g_.kernel - 1L) * (2 * g_.kernel - 1)) * g_.channels; }
  long part(int ky, int kx) const { return ((ky + 1) * (g_.kernel + 1L) + kx + 1) * g_.channels * columns(); }
  long sums() const { return (g_.kernel + 1L) * (g_.kernel + 1) * g_.channels * columns(); }

  // The copy: gaps behind each row and each image as wide as the largest difference.
  long row_pitch() const { return (g_.width + g_.kernel - 1L) * g_.channels; }
  long image_pitch() const { return (g_.height + g_.kernel - 1L) * row_pitch(); }
  long tail() const { return g_.kernel * row_pitch(); }
  long together() const { return std::max(1L, (1L << 15) / image_pitch()); }

  /// The sum over the pixels that (ky, kx) does not see, of all differences.
  void add_part(const Scalar* copy, long images, int ky, int kx, Scalar* to) const {
    using V = Vector<Scalar, static_cast<int>(lanes)>;
    const Range rows = unseen(ky, g_.height, g_.out_height()), row = unseen(kx, g_.width, g_.out_width());
    if (rows.size() <= 0 || row.size() <= 0) return;
    const PixelRuns runs{images, image_pitch(), rows.size(), row_pitch(), row.size()};
    const Scalar* const a = copy + rows.begin * row_pitch() + row.begin * g_.channels;
    for (int down = 0; down < g_.kernel; ++down) {
      const int first = down == 0 ? 0 : 1 - g_.kernel;
      detail::add_pixel_products<V>(runs, g_.channels, a, a + down * row_pitch() + first * g_.channels,
                                    (g_.kernel - first) * g_.channels, to + difference(down, first) * g_.channels, columns());
    }
  }
  /// Makes the sum of each pair of places k >= k', with k' the one whose pixels the parts name: that over all pixels, without
  /// the rows and columns that k' never sees; what is in both was taken away twice.
  void collect(const Scalar* room, Scalar factor, Scalar* to, long pitch) const {
    const int places = g_.kernel * g_.kernel;
    const long channels = g_.channels;
    for (int first = 0; first < places; ++first)
      for (int k = first; k < places; ++k) {
        const int ky = first / g_.kernel, kx = first % g_.kernel;
        const long column = difference(k / g_.kernel - ky, k % g_.kernel - kx) * channels;
        const Scalar *all = room + part(-1, -1) + column, *rows = room + part(ky, -1) + column,
                     *line = room + part(-1, kx) + column, *both = room + part(ky, kx) + column;
        for (long i = 0; i < channels; ++i)
          for (long j = 0; j < channels; ++j) {
            const long at = j * columns() + i;
            to[(k * channels + i) * pitch + first * channels + j] += factor * (all[at] - rows[at] - line[at] + both[at]);
          }
      }
  }

  Conv2dGeometry g_;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
