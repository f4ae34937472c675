// SPDX-License-Identifier: Apache-2.0
// Sums of loss, weight and correct answers on the GPU, in two small kernels and the same order in every run: warps take rows in
// turn and keep their sums apart; one warp adds these up, to the sums of the step.
#pragma once
#include <algorithm>

#include "../../device/cuda/launch.hpp"
#include "../label_loss.hpp"

namespace skein::inline SKEIN_ABI::ops::cuda {

inline constexpr long most_loss_groups = 2048;

/// The sum of two totals.
struct AddTotals {
  constexpr LossTotals operator()(const LossTotals& a, const LossTotals& b) const { return a + b; }
};

/// Group g takes rows g, g + groups, ...: f(row, lanes) gives every lane the row's totals.
template <class Function> struct LossGroup {
  Function f;
  long rows, groups;
  LossTotals* partial;
  template <class Lanes> constexpr void operator()(long group, Lanes lanes) const {
    LossTotals all;
    for (long r = group; r < rows; r += groups) all = all + f(r, lanes);
    if (lanes.index == 0) partial[group] = all;
  }
};

/// sums += all groups and `more`.
struct AddLossGroups {
  long groups;
  const LossTotals* partial;
  LossTotals more;
  double* sums;
  template <class Lanes> constexpr void operator()(long, Lanes lanes) const {
    LossTotals all;
    for (long g = lanes.index; g < groups; g += lanes.count) all = all + partial[g];
    all = lanes.reduce(all, AddTotals{}) + more;
    if (lanes.index == 0) {
      sums[0] += all.loss;
      sums[1] += all.weight;
      sums[2] += all.correct;
    }
  }
};

/// sums += f over all rows, and `more`. Throws ArgumentError without sums.
template <class Function> void add_loss(double* sums, long rows, const Function& f, const LossTotals& more = {}) {
  if (!sums) throw ArgumentError("a loss on Cuda adds its sums to three doubles in the device's memory: set LossCall::sums");
  if (rows <= 0) return;
  const long groups = std::min(rows, most_loss_groups);
  auto* partial = static_cast<LossTotals*>(skein::cuda::workspace().get(static_cast<std::size_t>(groups) * sizeof(LossTotals)));
  skein::cuda::for_each_row(groups, LossGroup<Function>{f, rows, groups, partial});
  skein::cuda::for_each_row(1, AddLossGroups{groups, partial, more, sums});
}

/// The gradient's factor of a pass, read where the step's values are.
template <class Call> constexpr auto gradient_factor(const Call& p) {
  return p.values ? static_cast<decltype(p.scale)>(static_cast<double>(p.scale) * p.values->loss_scale) : p.scale;
}

}  // namespace skein::inline SKEIN_ABI::ops::cuda
