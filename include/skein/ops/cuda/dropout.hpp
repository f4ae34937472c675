// SPDX-License-Identifier: Apache-2.0
// Dropout on the GPU: a thread makes two Philox blocks and so eight values; the same masks as the Cpu, bit for bit. Key and first
// sample are read from the step's values in device memory, so that a replayed step has fresh masks.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../dropout.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// Parts of eight elements, `parts` a row. Aligned: rows begin on 16 bytes.
template <class Scalar, bool Aligned> struct Dropout {
  static constexpr int blocks = 2, part = 4 * blocks;
  DropoutShape s;
  std::uint64_t threshold;
  Compute<Scalar> scale;
  const Scalar* x;
  Scalar* y;
  long parts;

  constexpr void operator()(long index) const {
    const long row = quotient(index, parts), at = (index - row * parts) * part;
    const std::uint64_t key = s.values ? random_key(s.values->key, s.purpose) : s.key;
    const std::uint64_t first = s.values ? s.values->global_first + s.first : s.first;
    const Scalar* from = x + row * s.pitch;
    Scalar* to = y + row * s.pitch;
    for (int b = 0; b < blocks; ++b) {
      const long e = at + 4 * b;
      if (e >= s.pitch) return;
      const Philox p = Philox::at(key, first + static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(e / 4));
      if (Aligned && e + 4 <= s.n) {
        constexpr int width = pack_width<Scalar> < 4 ? pack_width<Scalar> : 4;
        for (int w = 0; w < 4; w += width) {
          Pack<Scalar, width> values = load<width>(from + e + w);
          for (int k = 0; k < width; ++k)
            values.value[k] = static_cast<Scalar>(p.word[w + k] >= threshold ? values.value[k] * scale : 0);
          store(to + e + w, values);
        }
      } else {
        for (int k = 0; k < 4 && e + k < s.pitch; ++k)
          to[e + k] = static_cast<Scalar>(e + k < s.n && p.word[k] >= threshold ? from[e + k] * scale : 0);
      }
    }
  }
};

/// All or nothing is kept: no numbers are needed.
template <class Scalar> struct KeepOrClear {
  DropoutShape s;
  bool keep;
  const Scalar* x;
  Scalar* y;
  constexpr void operator()(long i) const {
    y[i] = keep && i - quotient(i, s.pitch) * s.pitch < s.n ? x[i] : static_cast<Scalar>(0);
  }
};
}  // namespace cuda

template <> struct DropoutKernels<Cuda> {
  template <class Scalar> static void run(const DropoutShape& s, double rate, const Scalar* x, Scalar* y) {
    const std::uint64_t threshold = dropout_threshold(rate);
    if (threshold == 0 || threshold > 0xffffffffull) {
      skein::cuda::for_each(s.rows * s.pitch, cuda::KeepOrClear<Scalar>{s, threshold == 0, x, y});
      return;
    }
    const auto scale = static_cast<cuda::Compute<Scalar>>(1 / (1 - rate));
    const long parts = (s.pitch + 7) / 8;
    if (s.pitch % cuda::pack_width<Scalar> == 0 && cuda::aligned_16(x, y))
      skein::cuda::for_each(s.rows * parts, cuda::Dropout<Scalar, true>{s, threshold, scale, x, y, parts});
    else skein::cuda::for_each(s.rows * parts, cuda::Dropout<Scalar, false>{s, threshold, scale, x, y, parts});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
