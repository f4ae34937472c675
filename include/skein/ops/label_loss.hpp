// SPDX-License-Identifier: Apache-2.0
// Losses of a row of outputs and a label: the row's loss is a function object, written once for every device. On a GPU the lanes
// of a warp share a row: each takes every row.step()-th output, from row.begin() on, and sums and maxima are made over all of
// them.
//
//     struct Hinge {  // sum_c max(0, 1 + x_c - x_label), c not the label
//       template <class Row> constexpr typename Row::Scalar operator()(const Row& row) const {
//         using Scalar = typename Row::Scalar;
//         Scalar loss = 0, count = 0;
//         for (long c = row.begin(); c < row.width; c += row.step()) {
//           const Scalar margin = 1 + row.x[c] - row.x[row.label];
//           const bool counts = c != row.label && margin > 0;
//           if (counts) loss += margin, count += 1;
//           row.derivative(c, counts ? Scalar(1) : Scalar(0));
//         }
//         count = row.sum(count);
//         row.derivative_at_label(-count);
//         return row.sum(loss);
//       }
//     };
#pragma once
#include <limits>

#include "../device/device.hpp"
#include "reference/softmax.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The one lane of a host.
struct SingleLane {
  static constexpr int count = 1, index = 0;
  template <class T, class Op> constexpr T reduce(T value, Op) const { return value; }
};

/// What a function object of a label loss gets.
template <class Scalar_, class Lanes> struct LossRow {
  using Scalar = Scalar_;
  const Scalar* x;  ///< the outputs
  long width;
  std::int32_t label;  ///< a class: the library has looked
  Scalar* gradient;    // null: not wanted
  Scalar factor;       // of derivatives: the label's weight and the gradient's scale
  Lanes lanes;

  constexpr long begin() const { return lanes.index; }
  constexpr long step() const { return lanes.count; }
  /// The sum, and the greatest, of all lanes' values; every lane gets it.
  constexpr Scalar sum(Scalar value) const { return lanes.reduce(value, Sum{}); }
  constexpr Scalar greatest(Scalar value) const { return lanes.reduce(value, Greatest{}); }
  /// The derivative by x[c], for the c of this lane.
  constexpr void derivative(long c, Scalar value) const {
    if (gradient) gradient[c] = value * factor;
  }
  /// The derivative by x[label], set by whichever lane it belongs to, after its derivative().
  constexpr void derivative_at_label(Scalar value) const {
    if (gradient && label % lanes.count == lanes.index) gradient[label] = value * factor;
  }

 private:
  struct Sum {
    constexpr Scalar operator()(Scalar a, Scalar b) const { return a + b; }
  };
  struct Greatest {
    constexpr Scalar operator()(Scalar a, Scalar b) const { return a > b ? a : b; }
  };
};

/// Loss, weight and number of correct answers, of one row or of many.
struct LossTotals {
  double loss = 0, weight = 0, correct = 0;
  friend constexpr LossTotals operator+(const LossTotals& a, const LossTotals& b) {
    return {a.loss + b.loss, a.weight + b.weight, a.correct + b.correct};
  }
};

namespace detail {
/// The greatest output so far and where it is; of equal ones the first. A NaN is greater than all, so that it is seen.
template <class Scalar> struct Best {
  Scalar value;
  long at;
};
template <class Scalar> constexpr bool is_better(Scalar x, Scalar than) { return x > than || (x != x && than == than); }
struct BestOf {
  template <class Scalar> constexpr Best<Scalar> operator()(const Best<Scalar>& a, const Best<Scalar>& b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    return is_better(b.value, a.value) || (!is_better(a.value, b.value) && b.at < a.at) ? b : a;
  }
};
template <class Scalar, class Lanes> constexpr Best<Scalar> best_of_row(const Scalar* x, long width, Lanes lanes) {
  Best<Scalar> best{Scalar(0), -1};
  for (long c = lanes.index; c < width; c += lanes.count)
    if (best.at < 0 || is_better(x[c], best.value)) best = {x[c], c};
  return lanes.reduce(best, BestOf{});
}
/// The gradient of a row that counts nothing.
template <class Scalar, class Lanes> constexpr void clear_row(Scalar* g, long begin, long pitch, Lanes lanes) {
  for (long c = begin + lanes.index; g && c < pitch; c += lanes.count) g[c] = 0;
}
/// What a row with a label that is no class adds on a device, where it cannot throw: it is seen in the loss.
constexpr LossTotals wrong_label() { return {std::numeric_limits<double>::quiet_NaN(), 0, 0}; }

/// One row of any label loss; the row's label is a class or ignored, else its loss is no number.
template <class Scalar, class Function, class Lanes> constexpr LossTotals label_loss_row(const CrossEntropyArguments<Scalar>& p,
                                                                                         const Function& f, Scalar scale, long r,
                                                                                         Lanes lanes) {
  const Scalar* x = p.logits + r * p.pitch;
  Scalar* g = p.gradient ? p.gradient + r * p.pitch : nullptr;
  const std::int32_t label = p.labels[r];
  if (p.skipped(label) || !p.legal(label)) {
    clear_row(g, 0, p.pitch, lanes);
    return p.skipped(label) ? LossTotals{} : wrong_label();
  }
  const Scalar weight = p.class_weights ? static_cast<Scalar>(p.class_weights[label]) : Scalar(1);
  const Best<Scalar> best = best_of_row(x, p.classes, lanes);
  const double correct = best.at == label && best.value == best.value ? 1.0 : 0.0;
  if (weight == 0) {  // not 0 times infinity
    clear_row(g, 0, p.pitch, lanes);
    return {0, 0, correct};
  }
  const Scalar loss = f(LossRow<Scalar, Lanes>{x, p.classes, label, g, weight * scale, lanes});
  clear_row(g, p.classes, p.pitch, lanes);
  return {static_cast<double>(weight) * static_cast<double>(loss), static_cast<double>(weight), correct};
}
}  // namespace detail

/// The pass on one device; a device without its header is a compile error that names this.
template <class Device> struct LabelLossKernels;

template <> struct LabelLossKernels<Cpu> {
  template <class Scalar, class Function> static CrossEntropySums run(const CrossEntropyArguments<Scalar>& p, const Function& f) {
    LossTotals all;
    for (long r = 0; r < p.count; ++r) {
      if (!p.skipped(p.labels[r]) && !p.legal(p.labels[r])) return {all.loss, all.weight, all.correct, r};
      all = all + detail::label_loss_row(p, f, p.scale, r, SingleLane{});
    }
    return {all.loss, all.weight, all.correct, -1};
  }
};

/// Sums over the rows of f(row) times the label's weight, of the weights, and of the correct answers; the gradient where it is
/// wanted. A device adds them to pass.sums, and the call returns nothing without waiting.
template <class Device, class Scalar, class Function>
CrossEntropySums label_loss(const CrossEntropyArguments<Scalar>& arguments, const Function& f) {
  return LabelLossKernels<Device>::run(arguments, f);
}

}  // namespace skein::inline SKEIN_ABI::ops
