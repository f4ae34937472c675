// SPDX-License-Identifier: Apache-2.0
// Linear: y = x W + b on flat samples. The weight is stored (in, out), so that outputs are contiguous; PyTorch stores the
// transposed one. Default initial values are PyTorch's: uniform within 1 / sqrt(in), weight and bias alike.
#pragma once
#include "../ops/gemm.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// N outputs. Options: NoBias, WeightInit<Init::...>, BiasInit<Init::...>.
template <int N, class... Options> struct Linear {
  static_assert(N > 0, "Linear needs at least one output");
  static constexpr bool has_bias = !detail::has_option<NoBias, Options...>;

  static constexpr LayerInfo describe(Extents in) {
    const int k = static_cast<int>(in.count());
    LayerInfo info;
    info.output = {1, {N}};
    info.parameters[0] = {.name = "weight", .extents = {2, {k, N}}, .init = detail::PickInit<WeightInit, Init::fan_in_uniform, Options...>::value,
                          .fan_in = k, .fan_out = N};
    if (has_bias)
      info.parameters[1] = {.name = "bias", .extents = {1, {N}}, .init = detail::PickInit<BiasInit, Init::fan_in_uniform, Options...>::value,
                            .fan_in = k, .fan_out = N, .decay = false};
    info.flops = 2L * k * N;
    info.saves_input = true;
    info.overwrites_gradients = true;
    info.kronecker = {k + (has_bias ? 1L : 0L), N};
    info.fault = in.flat() ? Fault::none : Fault::wants_flat;
    return info;
  }

  template <class In, class Frame> static void forward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    constexpr long k = In::count, xp = sample_pitch(In::extents), p = row_pitch(N);
    if constexpr (has_bias)
      for (long b = 0; b < f.batch; ++b)
        for (long j = 0; j < N; ++j) f.y[b * p + j] = f.parameters[k * p + j];
    ops::gemm<typename Frame::Device>(ops::Transpose::no, ops::Transpose::no, f.batch, N, k, Scalar(1), f.x, xp, f.parameters, p,
                                      has_bias ? Scalar(1) : Scalar(0), f.y, p);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    constexpr long k = In::count, xp = sample_pitch(In::extents), p = row_pitch(N);
    const Scalar before = f.context->accumulate ? Scalar(1) : Scalar(0);
    ops::gemm<typename Frame::Device>(ops::Transpose::yes, ops::Transpose::no, k, N, f.batch, Scalar(1), f.x, xp, f.dy, p, before, f.gradients, p);
    if constexpr (has_bias) {
      Scalar* db = f.gradients + k * p;
      if (before == 0)
        for (long j = 0; j < N; ++j) db[j] = 0;
      for (long b = 0; b < f.batch; ++b)
        for (long j = 0; j < N; ++j) db[j] += f.dy[b * p + j];
    }
    if (f.dx)
      ops::gemm<typename Frame::Device>(ops::Transpose::no, ops::Transpose::yes, f.batch, k, N, Scalar(1), f.dy, p, f.parameters, p, Scalar(0), f.dx, xp);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
