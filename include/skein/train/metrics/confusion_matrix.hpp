// SPDX-License-Identifier: Apache-2.0
// The confusion matrix: how often each class was taken for each. Its value is the accuracy; precision, recall and F1 of a
// class, a table and a picture for people come with it.
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../metric.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Counts of (true class, predicted class). Give it to a trainer by std::ref to read it afterwards.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int classes);
  /// With names of the classes, for text() and svg(); a TableEncoder's classes().
  explicit ConfusionMatrix(std::vector<std::string> names);
  static constexpr std::string_view name() { return "confusion matrix"; }
  /// Its value is the accuracy, which is there already: no column of its own.
  static constexpr bool has_column = false;
  int classes() const { return classes_; }
  /// Throws ArgumentError where there are not as many as classes.
  void check_outputs(int outputs) const {
    if (outputs != classes_)
      throw ArgumentError(skein::text("confusion matrix of {} classes: the outputs have {}", classes_, outputs));
  }

  /// Outputs that are NaN have no prediction and are left out.
  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), "confusion matrix");
    check_outputs(outputs.width);
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      detail::check_label(label, classes_, "confusion matrix");
      if (const int predicted = argmax(outputs[i]); predicted >= 0) counts_[index(label, predicted)] += 1;
    }
  }
  std::span<double> sums() { return {counts_.data(), counts_.size()}; }
  /// Share on the diagonal; NaN before the first sample.
  double value() const {
    double correct = 0, all = 0;
    for (int i = 0; i < classes_; ++i) {
      correct += at(i, i);
      for (int j = 0; j < classes_; ++j) all += at(i, j);
    }
    return correct / all;
  }

  /// How often the first class was taken for the second. Throws ArgumentError, as the measures below do, for a class that is not
  /// there.
  double at(int truth, int predicted) const {
    check_class(truth), check_class(predicted);
    return counts_[index(truth, predicted)];
  }
  /// The share of the samples taken for this class that are of it; NaN where there are none.
  double precision(int of) const {
    double taken = 0;
    for (int i = 0; i < classes_; ++i) taken += at(i, of);
    return at(of, of) / taken;
  }
  /// The share of the samples of this class that were taken for it; NaN where there are none.
  double recall(int of) const {
    double all = 0;
    for (int j = 0; j < classes_; ++j) all += at(of, j);
    return at(of, of) / all;
  }
  /// The harmonic mean of both.
  double f1(int of) const {
    double taken = 0, all = 0;
    for (int i = 0; i < classes_; ++i) taken += at(i, of), all += at(of, i);
    return 2 * at(of, of) / (taken + all);
  }

  /// A table: a row a true class, a column a predicted one, the recall at the end.
  std::string text() const;
  /// That table as a picture: the darker a field, the larger its share of the true class.
  std::string svg() const;
  void write_svg(const std::string& path) const;

 private:
  std::size_t index(int truth, int predicted) const {
    return static_cast<std::size_t>(truth) * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(predicted);
  }
  void check_class(int c) const {
    if (c < 0 || c >= classes_) [[unlikely]]
      refuse_class(c);
  }
  [[noreturn]] void refuse_class(int c) const;
  std::string class_name(int c) const;

  int classes_;
  std::vector<double> counts_;  // (true class, predicted class)
  std::vector<std::string> names_;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "confusion_matrix.ipp"
#endif
