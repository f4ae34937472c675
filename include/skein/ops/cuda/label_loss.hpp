// SPDX-License-Identifier: Apache-2.0
// Losses of rows and labels on the GPU: one warp a row, loss and gradient in one kernel, by the same function objects as on the
// Cpu.
#pragma once
#include "../../core/error.hpp"
#include "../label_loss.hpp"
#include "loss_sums.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// One row of a label loss, by the lanes of a warp: what a launch over the rows calls.
template <class Scalar, class Function> struct LabelLossRow {
  CrossEntropyArguments<Scalar> p;
  Function f;
  template <class Lanes> constexpr LossTotals operator()(long row, Lanes lanes) const {
    return ops::detail::label_loss_row(p, f, gradient_factor(p), row, lanes);
  }
};
}  // namespace cuda

template <> struct LabelLossKernels<Cuda> {
  template <class Scalar, class Function> static CrossEntropySums run(const CrossEntropyArguments<Scalar>& p, const Function& f) {
    cuda::add_loss(p.sums, p.count, cuda::LabelLossRow<Scalar, Function>{p, f});
    return {};
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
