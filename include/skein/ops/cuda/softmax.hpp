// SPDX-License-Identifier: Apache-2.0
// Softmax, cross-entropy and its gradient on the GPU: one kernel, one warp a row.
#pragma once
#include <cmath>

#include "../../core/error.hpp"
#include "../softmax.hpp"
#include "loss_sums.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// One row of cross-entropy, by the lanes of a warp: what a launch over the rows calls.
template <class Scalar> struct CrossEntropyRow {
  CrossEntropyArguments<Scalar> p;
  struct Sum {
    constexpr Scalar operator()(Scalar a, Scalar b) const { return a + b; }
  };

  template <class Lanes> constexpr LossTotals operator()(long row, Lanes lanes) const {
    const Scalar* x = p.logits + row * p.pitch;
    Scalar* g = p.gradient ? p.gradient + row * p.pitch : nullptr;
    const std::int32_t label = p.labels[row];
    if (p.skipped(label) || !p.legal(label)) {
      ops::detail::clear_row(g, 0, p.pitch, lanes);
      return p.skipped(label) ? LossTotals{} : ops::detail::wrong_label();
    }
    const auto best = ops::detail::best_of_row(x, p.classes, lanes);
    const Scalar share = p.smoothing / static_cast<Scalar>(p.classes), weight = weight_of(label),
                 hard = (1 - p.smoothing) * weight;
    Scalar total = 0;
    for (long c = lanes.index; c < p.classes; c += lanes.count) total += std::exp(x[c] - best.value);
    total = lanes.reduce(total, Sum{});
    const Scalar log_total = std::log(total);
    Scalar loss = hard == 0 ? 0 : hard * (log_total - (x[label] - best.value)), attention = hard;  // not 0 times infinity
    if (share != 0) {  // sum_c w_c (-log p_c), spread by the smoothing
      Scalar spread = 0, weights = 0;
      for (long c = lanes.index; c < p.classes; c += lanes.count) {
        if (weight_of(c) == 0) continue;
        spread += weight_of(c) * (log_total - (x[c] - best.value));
        weights += weight_of(c);
      }
      loss += share * lanes.reduce(spread, Sum{});
      attention += share * lanes.reduce(weights, Sum{});
    }
    if (g) {
      const Scalar scale = gradient_factor(p), factor = attention * scale / total;
      for (long c = lanes.index; c < p.pitch; c += lanes.count) {
        Scalar derivative = 0;
        if (c < p.classes) {
          derivative = std::exp(x[c] - best.value) * factor;
          if (share != 0) derivative -= share * weight_of(c) * scale;
          if (c == label) derivative -= hard * scale;
        }
        g[c] = derivative;
      }
    }
    return {static_cast<double>(loss), static_cast<double>(weight), best.at == label && total == total ? 1.0 : 0.0};
  }

 private:
  constexpr Scalar weight_of(long c) const { return p.class_weights ? static_cast<Scalar>(p.class_weights[c]) : Scalar(1); }
};
}  // namespace cuda

template <> struct CrossEntropyKernels<Cuda> {
  template <class Scalar> static CrossEntropySums run(const CrossEntropyArguments<Scalar>& p) {
    cuda::add_loss(p.sums, p.count, cuda::CrossEntropyRow<Scalar>{p});
    return {};
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
