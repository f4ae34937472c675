// SPDX-License-Identifier: Apache-2.0
// Losses that are sums over elements, on the GPU: loss and gradient in one kernel, by the same function objects as on the Cpu.
#pragma once
#include "../../core/error.hpp"
#include "../vector_loss.hpp"
#include "loss_sums.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// Part k: 128 stored elements of the outputs, gaps among them.
template <class Scalar, class Function> struct VectorLossPart {
  static constexpr long size = 128;
  VectorLossArguments<Scalar> p;
  Function f;
  template <class Lanes> constexpr LossTotals operator()(long part, Lanes lanes) const {
    const long begin = part * size, all = p.count * p.output_pitch, end = begin + size < all ? begin + size : all;
    const Scalar factor = gradient_factor(p);
    double sum = 0;
    for (long i = begin + lanes.index; i < end; i += lanes.count) {
      const long row = quotient(i, p.output_pitch), column = i - row * p.output_pitch;
      Scalar derivative = 0;
      if (column < p.width)
        sum += static_cast<double>(f(p.outputs[i], p.targets[row * p.target_pitch + column], column, derivative));
      if (p.gradient) p.gradient[i] = derivative * factor;
    }
    return {lanes.reduce(sum, Sum{}), 0, 0};
  }

 private:
  struct Sum {
    constexpr double operator()(double a, double b) const { return a + b; }
  };
};
}  // namespace cuda

template <> struct VectorLossKernels<Cuda> {
  template <class Scalar, class Function> static double run(const VectorLossArguments<Scalar>& p, const Function& f) {
    using Part = cuda::VectorLossPart<Scalar, Function>;
    cuda::add_loss(p.sums, (p.count * p.output_pitch + Part::size - 1) / Part::size, Part{p, f},
                   {0, static_cast<double>(p.count) * static_cast<double>(p.width), 0});
    return 0;
  }
  static void prepare() {
    skein::cuda::workspace().reserve(static_cast<std::size_t>(cuda::most_loss_groups) * sizeof(LossTotals));
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
