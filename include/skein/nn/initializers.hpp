// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters: the field's initializers as an enumeration, and a fill that depends on (seed, parameter,
// logical index) only: the same on any number of threads and ranks, with and without padding.
// Glorot and Bengio, AISTATS 2010 (Xavier); He et al., ICCV 2015 (Kaiming); PyTorch's defaults for Linear and Conv2d.
#pragma once
#include <cmath>
#include <cstdint>

#include "../core/random.hpp"
#include "../core/shape.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// How initial values are drawn.
enum class Init {
  fan_in_uniform,  ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default of weight and bias
  zeros,
  ones,
  kaiming_uniform,  ///< U(+-sqrt(6 / fan_in)), for ReLU
  kaiming_normal,   ///< N(0, 2 / fan_in)
  xavier_uniform,   ///< U(+-sqrt(6 / (fan_in + fan_out)))
  xavier_normal,    ///< N(0, 2 / (fan_in + fan_out))
  lecun_normal      ///< N(0, 1 / fan_in)
};

/// Fills one stored parameter (rows of extents.last() values, row_pitch apart; gaps stay as they are).
template <class Scalar> void initialize(Scalar* to, const Extents& extents, Init init, long fan_in, long fan_out,
                                        std::uint64_t key, std::uint64_t stream) {
  const double in = fan_in > 0 ? static_cast<double>(fan_in) : 1, out = fan_out > 0 ? static_cast<double>(fan_out) : 1;
  double constant = 0, uniform = 0, deviation = 0;
  switch (init) {
    case Init::fan_in_uniform:
      uniform = 1 / std::sqrt(in);
      break;
    case Init::zeros:
      break;
    case Init::ones:
      constant = 1;
      break;
    case Init::kaiming_uniform:
      uniform = std::sqrt(6 / in);
      break;
    case Init::kaiming_normal:
      deviation = std::sqrt(2 / in);
      break;
    case Init::xavier_uniform:
      uniform = std::sqrt(6 / (in + out));
      break;
    case Init::xavier_normal:
      deviation = std::sqrt(2 / (in + out));
      break;
    case Init::lecun_normal:
      deviation = std::sqrt(1 / in);
      break;
  }
  const long columns = extents.last(), rows = extents.count() / columns, pitch = row_pitch(columns);
  for (long r = 0; r < rows; ++r)
    for (long c = 0; c < columns; ++c) {
      const std::uint64_t i = static_cast<std::uint64_t>(r * columns + c);
      double value = constant;
      if (uniform != 0) value = uniform * (2.0 * random_uniform(key, stream, i) - 1.0);
      if (deviation != 0) value = deviation * random_normal(key, stream, i);
      to[r * pitch + c] = static_cast<Scalar>(value);
    }
}

}  // namespace skein::inline SKEIN_ABI::nn
