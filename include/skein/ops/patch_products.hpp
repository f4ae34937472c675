// SPDX-License-Identifier: Apache-2.0
// Second moments of the patches that a convolution multiplies by its weights. Grosse and Martens, "A Kronecker-factored
// approximate Fisher matrix for convolution layers", ICML 2016, arXiv:1602.01407.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/patch_products.hpp"
#include "patches.hpp"
#include "symmetric_product.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// to, the lower triangle of (n, n) with n = weight_rows, its rows `pitch` scalars apart, += factor * the sum over all patches of
/// the images x (batch, depth, height, width, channels) of a patch by itself. Of one group. On the calling thread.
template <class Scalar> void add_patch_products(const Conv2dGeometry& g, const Scalar* x, long batch, Scalar factor,
                                                std::vector<Scalar>& scratch, Scalar* to, long pitch) {
  const auto room = [&](long n) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(n)));
    return scratch.data();
  };
#if SKEIN_WITH_XSIMD
  if (const cpu::PatchProducts<Scalar> products(g); products.possible())
    return products.add(x, batch, factor, room(products.room()), to, pitch);
#endif
  const long pixels = g.out_pixels(), width = g.weight_rows();
  const long together = std::max(1L, (1L << 17) / (pixels * width));
  Scalar* const patches = room(together * pixels * width);
  for (long n = 0; n < batch; n += together) {
    const long count = std::min(together, batch - n);
    for (long i = 0; i < count; ++i) write_patches(g, x + (n + i) * g.in_count(), patches + i * pixels * width);
    add_symmetric_product(count * pixels, width, factor, patches, width, to, pitch);
  }
}

/// to (weight_rows) += factor * the sum of these patches: those of the sum of the images.
template <class Scalar> void add_patch_sums(const Conv2dGeometry& g, const Scalar* x, long batch, Scalar factor,
                                            std::vector<Scalar>& scratch, Scalar* to) {
  const long count = g.in_count();
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(count)));
  Scalar* const sum = scratch.data();
  std::fill_n(sum, count, Scalar(0));
  for (long n = 0; n < batch; ++n, x += count)
    for (long i = 0; i < count; ++i) sum[i] += x[i];
  for (long pixel = 0; pixel < g.out_pixels(); ++pixel)
    reference::detail::each_tap(g, pixel, [&](long at, long tap) {
      for (int c = 0; c < g.channels; ++c) to[tap + c] += factor * sum[at + c];
    });
}

}  // namespace skein::inline SKEIN_ABI::ops
