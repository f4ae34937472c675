// SPDX-License-Identifier: Apache-2.0
// What second-order methods take of a layer: second moments of its inputs (a 1 behind them where there is a bias) and of its
// outputs' gradients, added up where both are in memory, at the end of its backward. A layer that has such factors says their
// sizes in LayerInfo::curvature, and hands its samples over:
//     template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
//       sums.inputs(f.x, f.batch, In::count, row_pitch(In::count));
//       sums.gradients(f.dy, f.batch, row_pitch(N));
//     }
// Unit-wise (of a scale and a shift) the second moments are those of each sample's own gradient, before the layer's backward; the
// layer adds that of a batch of one sample to f.gradients:
//     template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
// A KroneckerRun calls these; an executor of another run compiles none of it.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "../ops/patch_products.hpp"
#include "../ops/symmetric_product.hpp"
#include "../plan/program.hpp"
#include "run.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A layer's weights in the arena, one matrix (a, g) whose last row is the bias where there is one, and the place of its sums.
struct KroneckerPlace {
  long parameter = 0;  ///< where the matrix begins; its rows are row_pitch(g) apart
  long last_row = 0;   ///< where its last row lies
  long a = 0, g = 0;
  long sums = 0;  ///< (a, a), then (g, g); or (g, a, a)
  bool unit_wise = false;

  long row(long i) const { return i + 1 < a ? parameter + i * row_pitch(g) : last_row; }
};

/// The sums of one layer's samples, of one worker. Lower triangles.
template <class Scalar> struct KroneckerSums {
  const KroneckerPlace* place = nullptr;  ///< null: nobody wants them
  Scalar* all = nullptr;                  ///< of all layers
  std::vector<Scalar>* scratch = nullptr;
  long a = place ? place->a : 0;
  long g = place ? place->g : 0;
  Scalar* a_sums = place ? all + place->sums : nullptr;
  Scalar* g_sums = place ? a_sums + a * a : nullptr;

  /// The sums of the layer's next block.
  KroneckerSums next() const { return {place + 1, all, scratch}; }

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
  /// Adds the second moments of the patches of x, the inputs of a convolution, times mean_of_pixels(), to a_sums.
  void images(const ops::Conv2dGeometry& geometry, const Scalar* x, long batch) const {
    const long pixels = geometry.out_pixels(), width = geometry.weight_rows();
    const Scalar factor = mean_of_pixels(pixels);
    ops::add_patch_products(geometry, x, batch, factor, *scratch, a_sums, a);
    if (width == a) return;
    ops::add_patch_sums(geometry, x, batch, factor, *scratch, a_sums + width * a);
    a_sums[width * a + width] += factor * static_cast<Scalar>(batch * pixels);
  }
  /// Unit-wise: of each sample's own gradient, which L makes of a batch of one.
  template <class L, class In, class F> void units(const F& f) const {
    constexpr LayerInfo info = L::describe(In::extents);
    constexpr long in = sample_pitch(In::extents), out = sample_pitch(info.output);
    const auto moved = [](auto* samples, long by) { return samples ? samples + by : samples; };
    const long pitch = row_pitch(g);
    F one = f;
    one.batch = 1;
    one.dx = nullptr;
    one.gradients = room(a * pitch);
    for (long n = 0; n < f.batch; ++n) {
      one.x = moved(f.x, n * in), one.y = moved(f.y, n * out), one.dy = moved(f.dy, n * out);
      one.saved_for_backward = moved(f.saved_for_backward, n * info.saved_for_backward);
      one.dsum = moved(f.dsum, n * out);
      std::fill_n(one.gradients, a * pitch, Scalar(0));
      L::template unit_gradient<In>(one);
      for (long unit = 0; unit < g; ++unit)
        for (long i = 0; i < a; ++i)
          for (long j = 0; j <= i; ++j)
            a_sums[(unit * a + i) * a + j] += one.gradients[i * pitch + unit] * one.gradients[j * pitch + unit];
    }
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

/// L has Kronecker factors.
template <class L, class In, class F, class Sums> concept HasKroneckerFactors = requires(const F& f, const Sums& sums) {
  L::template kronecker_factors<In>(f, sums);
};
/// The curvature of L's scale and shift is taken unit-wise.
template <class L, class In, class F> concept HasUnitGradient = requires(F& f) { L::template unit_gradient<In>(f); };

/// A worker's pass that adds up factors on its way, while it `collects`.
template <class Scalar_, class Device_, class Activation_> struct KroneckerRun : Run<Scalar_, Device_, Activation_> {
  static constexpr bool collects_factors = true;
  std::span<const KroneckerPlace> places;  ///< by their parameters' offsets
  std::vector<Scalar_> factor_sums, factor_scratch;
  bool collects = false;

  /// Behind the backward of a layer L whose parameters begin at `parameter`.
  template <class L, class In, class F> void add_factors(long parameter, const F& f) {
    if constexpr (HasKroneckerFactors<L, In, F, KroneckerSums<Scalar_>>) {
      constexpr plan::CurvatureBlock first = L::describe(In::extents).curvature[0];
      if (first.a > 0 && collects) L::template kronecker_factors<In>(f, sums_at(parameter));
    }
  }
  /// Before that backward, which may write over what the layer has saved.
  template <class L, class In, class F> void add_units(long parameter, const F& f) {
    if constexpr (HasUnitGradient<L, In, F>) {
      constexpr auto blocks = L::describe(In::extents).curvature;
      constexpr long begin = blocks[blocks[0].unit_wise ? 0 : 1].begin;
      if (!collects) return;
      if (const auto sums = sums_at(parameter + begin); sums.place) sums.template units<L, In>(f);
    }
  }

 private:
  /// The sums of the block whose weights begin at `parameter`; without a place where there is no such block.
  KroneckerSums<Scalar_> sums_at(long parameter) {
    const auto p = std::lower_bound(places.begin(), places.end(), parameter,
                                    [](const KroneckerPlace& place, long offset) { return place.parameter < offset; });
    if (p == places.end() || p->parameter != parameter) return {};
    return {&*p, factor_sums.data(), &factor_scratch};
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
