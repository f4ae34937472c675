// SPDX-License-Identifier: Apache-2.0
// What second-order methods take of a layer: second moments of its inputs (a 1 behind them where there is a bias) and of its
// outputs' gradients, added up where both are in memory, at the end of its backward. A layer that has such factors says their
// sizes in LayerInfo::kronecker, and hands its samples over:
//     template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, Sums& sums);
// A KroneckerRun calls that; an executor of another run compiles none of it.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "../ops/patch_products.hpp"
#include "../ops/symmetric_product.hpp"
#include "../plan/program.hpp"
#include "node.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A layer's weights in the arena, one matrix (a, g) whose last row is the bias where there is one, and the place of its sums.
struct KroneckerPlace {
  long parameter = 0;  ///< where the matrix begins; its rows are row_pitch(g) apart
  long a = 0, g = 0;
  long sums = 0;  ///< (a, a), then (g, g)
};

/// The sums of one layer's samples, of one worker. Lower triangles.
template <class Scalar> struct KroneckerSums {
  Scalar *a_sums = nullptr, *g_sums = nullptr;
  long a = 0, g = 0;
  std::vector<Scalar>* scratch = nullptr;

  /// x: (rows, columns), with a 1 behind each row where columns < a.
  void inputs(const Scalar* x, long rows, long columns, long pitch, Scalar factor = 1) const {
    ops::add_symmetric_product(rows, columns, factor, x, pitch, a_sums, a);
    if (columns == a) return;
    Scalar* const ones = a_sums + columns * a;
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < columns; ++c) ones[c] += factor * x[r * pitch + c];
    ones[columns] += factor * static_cast<Scalar>(rows);
  }
  /// dy: (rows, g).
  void gradients(const Scalar* dy, long rows, long pitch, Scalar factor = 1) const {
    ops::add_symmetric_product(rows, g, factor, dy, pitch, g_sums, g);
  }
  /// Of a convolution: means over the pixels, of patches and of gradients, as each sample had one.
  void images(const ops::Conv2dGeometry& geometry, const Scalar* x, long batch) const {
    const long pixels = geometry.out_pixels(), width = geometry.weight_rows();
    const Scalar factor = mean_of_pixels(pixels);
    ops::add_patch_products(geometry, x, batch, factor, *scratch, a_sums, a);
    if (width == a) return;
    ops::add_patch_sums(geometry, x, batch, factor, *scratch, a_sums + width * a);
    a_sums[width * a + width] += factor * static_cast<Scalar>(batch * pixels);
  }
  /// Memory for n scalars, until the next call.
  Scalar* room(long n) const {
    scratch->resize(std::max(scratch->size(), static_cast<std::size_t>(n)));
    return scratch->data();
  }
  /// Each value is divided by the pixels, and the sum by them once more.
  static Scalar mean_of_pixels(long pixels) {
    const double n = static_cast<double>(pixels);
    return static_cast<Scalar>(1 / (n * n * n));
  }
};

/// A worker's pass that adds up factors on its way, while it `collects`.
template <class Scalar_, class Device_, class Activation_> struct KroneckerRun : Run<Scalar_, Device_, Activation_> {
  std::span<const KroneckerPlace> places;  ///< by their parameters' offsets
  std::vector<Scalar_> factor_sums, factor_scratch;
  bool collects = false;

  KroneckerSums<Scalar_> sums_at(long parameter) {
    const auto p = std::lower_bound(places.begin(), places.end(), parameter,
                                    [](const KroneckerPlace& place, long offset) { return place.parameter < offset; });
    Scalar_* const at = factor_sums.data() + p->sums;
    return {at, at + p->a * p->a, p->a, p->g, &factor_scratch};
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
