// SPDX-License-Identifier: Apache-2.0
// Elementwise passes on the GPU: a thread takes 16 bytes of each array where all are aligned, else one value. The function object
// is the layer's own, with dual numbers where it is a derivative.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../map.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// y = f(x), Width values an index; 16-bit types are computed in float.
template <class Function, class Scalar, int Width> struct MapPack {
  Function f;
  long n;
  const Scalar* x;
  Scalar* y;
  constexpr void operator()(long index) const {
    const long at = index * Width;
    if (at + Width <= n) {
      Pack<Scalar, Width> p = load<Width>(x + at);
      for (int k = 0; k < Width; ++k) p.value[k] = static_cast<Scalar>(f(Compute<Scalar>(p.value[k])));
      store(y + at, p);
    } else {
      for (long i = at; i < n; ++i) y[i] = static_cast<Scalar>(f(Compute<Scalar>(x[i])));
    }
  }
};

/// y = f(a, b), Width values an index.
template <class Function, class Scalar, int Width> struct ZipPack {
  Function f;
  long n;
  const Scalar* a;
  const Scalar* b;
  Scalar* y;
  constexpr void operator()(long index) const {
    const long at = index * Width;
    if (at + Width <= n) {
      Pack<Scalar, Width> p = load<Width>(a + at);
      const Pack<Scalar, Width> q = load<Width>(b + at);
      for (int k = 0; k < Width; ++k)
        p.value[k] = static_cast<Scalar>(f(Compute<Scalar>(p.value[k]), Compute<Scalar>(q.value[k])));
      store(y + at, p);
    } else {
      for (long i = at; i < n; ++i) y[i] = static_cast<Scalar>(f(Compute<Scalar>(a[i]), Compute<Scalar>(b[i])));
    }
  }
};
}  // namespace cuda

template <> struct MapKernels<Cuda> {
  template <class Function, class Scalar> static void map(Function f, long n, const Scalar* x, Scalar* y) {
    constexpr int width = cuda::pack_width<Scalar>;
    if (cuda::aligned_16(x, y))
      skein::cuda::for_each((n + width - 1) / width, cuda::MapPack<Function, Scalar, width>{f, n, x, y});
    else skein::cuda::for_each(n, cuda::MapPack<Function, Scalar, 1>{f, n, x, y});
  }
  template <class Function, class Scalar> static void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
    constexpr int width = cuda::pack_width<Scalar>;
    if (cuda::aligned_16(a, b, y))
      skein::cuda::for_each((n + width - 1) / width, cuda::ZipPack<Function, Scalar, width>{f, n, a, b, y});
    else skein::cuda::for_each(n, cuda::ZipPack<Function, Scalar, 1>{f, n, a, b, y});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
