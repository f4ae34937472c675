// SPDX-License-Identifier: Apache-2.0
// The confusion matrix: how often each class was taken for each. Its value is the accuracy; precision, recall and F1 of a
// class, and a table for people, come with it.
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../metric.hpp"
#include "../text.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Counts of (true class, predicted class). Give it to a trainer by std::ref to read it afterwards.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int classes) : classes_(classes) {
    if (classes < 1 || classes > 32768)
      throw ArgumentError("a confusion matrix of " + std::to_string(classes) + " classes: 1 to 32768 are possible");
    counts_.resize(static_cast<std::size_t>(classes) * static_cast<std::size_t>(classes));  // (true class, predicted class)
  }
  static constexpr std::string_view name() { return "confusion matrix"; }
  /// Its value is the accuracy, which is there already: no column of its own.
  static constexpr bool has_column = false;
  int classes() const { return classes_; }

  /// Outputs that are NaN have no prediction and are left out.
  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), "confusion matrix");
    if (outputs.width != classes_)
      throw ArgumentError("confusion matrix of " + std::to_string(classes_) + " classes: the outputs have " +
                          std::to_string(outputs.width));
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      detail::check_label(label, classes_, "confusion matrix");
      if (const int predicted = argmax(outputs[i]); predicted >= 0) counts_[index(label, predicted)] += 1;
    }
  }
  std::span<double> sums() { return counts_; }
  /// Share on the diagonal; NaN before the first sample.
  double value() const {
    double correct = 0, all = 0;
    for (int i = 0; i < classes_; ++i) {
      correct += at(i, i);
      for (int j = 0; j < classes_; ++j) all += at(i, j);
    }
    return correct / all;
  }

  double at(int truth, int predicted) const { return counts_[index(truth, predicted)]; }
  /// Of the samples taken for this class, the share that was right; NaN where there are none.
  double precision(int of) const {
    double taken = 0;
    for (int i = 0; i < classes_; ++i) taken += at(i, of);
    return at(of, of) / taken;
  }
  /// Of the samples of this class, the share that was found; NaN where there are none.
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
  std::string text() const {
    std::string out = "true\\as";
    for (int j = 0; j < classes_; ++j) append_right(out, std::to_string(j));
    out += "  recall\n";
    for (int i = 0; i < classes_; ++i) {
      std::string head = std::to_string(i);
      out.append(head.size() < 7 ? 7 - head.size() : 0, ' ').append(head);
      for (int j = 0; j < classes_; ++j) append_right(out, std::to_string(static_cast<long long>(at(i, j))));
      out += "  ";
      if (const double r = recall(i); r == r) append_fixed(out, 100 * r, 1), out += " %";
      else out += "-";
      out += '\n';
    }
    return out;
  }

 private:
  std::size_t index(int truth, int predicted) const {
    return static_cast<std::size_t>(truth) * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(predicted);
  }
  static void append_right(std::string& out, const std::string& cell) {
    out.append(cell.size() < 7 ? 7 - cell.size() : 1, ' ').append(cell);
  }

  int classes_;
  std::vector<double> counts_;
};

}  // namespace skein::inline SKEIN_ABI::train
