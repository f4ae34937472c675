// SPDX-License-Identifier: Apache-2.0
// Accuracy and top-k accuracy over labels, and accuracy of yes-or-no outputs over target rows.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "../metric.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Hits and samples: the state of every kind of accuracy.
struct Ratio {
  std::array<double, 2> state{};
  void count(bool hit) {
    state[0] += hit ? 1 : 0;
    state[1] += 1;
  }
  double value() const { return state[1] > 0 ? state[0] / state[1] : std::nan(""); }
};
inline void check_label(int label, int width, const char* metric) {
  if (label >= width)
    throw ArgumentError(skein::text("{}: label {} for outputs of {} classes; labels run from 0, and negative ones are left out",
                                    metric, label, width));
}
inline void check_labels(long rows, std::size_t labels, const char* metric) {
  if (static_cast<std::size_t>(rows) != labels)
    throw ArgumentError(skein::text("{}: {} outputs, but {} labels", metric, rows, labels));
}
template <class A, class B> void check_targets(const Rows<A>& outputs, const Rows<B>& targets, const char* metric) {
  if (outputs.count != targets.count || outputs.width != targets.width)
    throw ArgumentError(skein::text("{}: outputs ({}, {}), but targets ({}, {})", metric, outputs.count, outputs.width,
                                    targets.count, targets.width));
}
}  // namespace detail

/// Share of samples whose greatest output is the label's. value() in [0, 1]; NaN before the first sample.
class Accuracy {
 public:
  static constexpr std::string_view name() { return "accuracy"; }
  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), "accuracy");
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      detail::check_label(label, outputs.width, "accuracy");
      ratio_.count(argmax(outputs[i]) == label);
    }
  }
  std::span<double> sums() { return ratio_.state; }
  double value() const { return ratio_.value(); }

 private:
  detail::Ratio ratio_;
};

/// Share of samples whose label is among the k greatest outputs; of equal outputs the first counts as greater.
class TopK {
 public:
  explicit TopK(int k = 5) : k_(k) {
    if (k < 1) throw ArgumentError(skein::text("top-k accuracy of k = {}: k is at least 1", k));
    const std::string text = skein::text("top-{}", k);
    length_ = text.copy(name_.data(), name_.size());
  }
  std::string_view name() const { return {name_.data(), length_}; }
  /// Throws ArgumentError where there are fewer than k.
  void check_outputs(int outputs) const {
    if (k_ > outputs)
      throw ArgumentError(
          skein::text("top-k accuracy of k = {}: the outputs are of {} classes, and k is at most that", k_, outputs));
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), "top-k accuracy");
    check_outputs(outputs.width);
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      detail::check_label(label, outputs.width, "top-k accuracy");
      ratio_.count(place(outputs[i], label) < k_);
    }
  }
  std::span<double> sums() { return ratio_.state; }
  double value() const { return ratio_.value(); }

 private:
  /// How many outputs come before the label's; all of them where it is NaN.
  template <class Scalar> static int place(std::span<const Scalar> row, int label) {
    const Scalar own = row[static_cast<std::size_t>(label)];
    if (own != own) return static_cast<int>(row.size());
    int before = 0;
    for (int j = 0; j < static_cast<int>(row.size()); ++j) {
      const Scalar other = row[static_cast<std::size_t>(j)];
      before += other > own || (other == own && j < label);
    }
    return before;
  }

  int k_;
  std::array<char, 16> name_{};
  std::size_t length_ = 0;
  detail::Ratio ratio_;
};

/// Share of outputs on their target's side: output > threshold against target > 0.5. The threshold is 0 for logits (what
/// BinaryCrossEntropy takes), 0.5 for probabilities.
class BinaryAccuracy {
 public:
  explicit BinaryAccuracy(double threshold = 0) : threshold_(threshold) {}
  static constexpr std::string_view name() { return "binary accuracy"; }
  double threshold() const { return threshold_; }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    detail::check_targets(outputs, targets, "binary accuracy");
    for (long i = 0; i < outputs.count; ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(outputs.width); ++j) {
        const Scalar output = outputs[i][j];
        ratio_.count(output == output && (static_cast<double>(output) > threshold_) == (targets[i][j] > Scalar(0.5)));
      }
  }
  std::span<double> sums() { return ratio_.state; }
  double value() const { return ratio_.value(); }

 private:
  double threshold_;
  detail::Ratio ratio_;
};

}  // namespace skein::inline SKEIN_ABI::train
