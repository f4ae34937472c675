// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1 over all samples, of one class or as the mean over the classes (macro). They count, for each class,
// the samples that are of it, that were taken for it, and both.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../metric.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What Precision, Recall and F1 have in common. Of labels, a sample is taken for the class of its greatest output; of target
/// rows of 0 and 1, each column is a class, and an output above the threshold is a yes: 0 for logits, 0.5 for probabilities.
class ClassCounts {
 public:
  std::string_view name() const { return name_; }
  double threshold() const { return threshold_; }
  /// Throws ArgumentError where its class is none of so many.
  void check_outputs(int classes) const;
  /// How many classes come, so that a rank without samples has as many sums as the others.
  void begin(int classes, int) { counts_.assign(3 * static_cast<std::size_t>(classes), 0); }

  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), name_.c_str());
    if (counts_.empty()) begin(outputs.width, 1);
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      detail::check_label(label, outputs.width, name_.c_str());
      const int taken = argmax(outputs[i]);
      of(label)[actual] += 1;
      if (taken >= 0) of(taken)[said] += 1;
      if (taken == label) of(label)[right] += 1;
    }
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    detail::check_targets(outputs, targets, name_.c_str());
    if (counts_.empty()) begin(outputs.width, outputs.width);
    for (long i = 0; i < outputs.count; ++i)
      for (int c = 0; c < outputs.width; ++c) {
        const auto column = static_cast<std::size_t>(c);
        const bool yes = static_cast<double>(outputs[i][column]) > threshold_;
        const bool is = is_yes(static_cast<double>(targets[i][column]));
        of(c)[actual] += is;
        of(c)[said] += yes;
        of(c)[right] += yes && is;
      }
  }
  std::span<double> sums() { return {counts_.data(), counts_.size()}; }

 protected:
  enum Count { right, said, actual };
  /// `of` negative: the mean over the classes.
  ClassCounts(std::string_view name, int of, double threshold);
  /// right / (a * said + b * actual), or the mean of it over the classes that are there: 0 where nothing was said, as in
  /// scikit-learn. NaN before the first sample.
  double score(double a, double b) const;

 private:
  double* of(int c) { return counts_.data() + 3 * c; }
  /// Throws ArgumentError for a target that is neither 0 nor 1, as those of a regression are.
  bool is_yes(double target) const {
    if (target != 0 && target != 1) refuse_target(target);
    return target == 1;
  }
  [[noreturn]] void refuse_target(double target) const;

  std::string name_;
  int class_;
  double threshold_;
  std::vector<double> counts_;  // (class, Count)
};

/// The share of the samples taken for a class that are of it: train::Precision{} is the mean over the classes,
/// train::Precision{1} that of class 1.
class Precision : public ClassCounts {
 public:
  explicit Precision(int of = -1, double threshold = 0) : ClassCounts("precision", of, threshold) {}
  double value() const { return score(1, 0); }
};

/// The share of the samples of a class that were taken for it.
class Recall : public ClassCounts {
 public:
  explicit Recall(int of = -1, double threshold = 0) : ClassCounts("recall", of, threshold) {}
  double value() const { return score(0, 1); }
};

/// The harmonic mean of a class's precision and recall; the mean of that over the classes.
class F1 : public ClassCounts {
 public:
  explicit F1(int of = -1, double threshold = 0) : ClassCounts("F1", of, threshold) {}
  double value() const { return score(0.5, 0.5); }
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "class_scores.ipp"
#endif
