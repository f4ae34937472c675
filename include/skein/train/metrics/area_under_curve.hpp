// SPDX-License-Identifier: Apache-2.0
// The area under the ROC curve: the probability that a sample of the class has a greater score than one that is not of it. It is
// a measure of all samples together, not a mean over batches: the scores are kept, and sorted at the end.
#pragma once
#include <string_view>
#include <vector>

#include "../metric.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// AUC; of equal scores a half counts. Of two classes by the difference of their outputs; of more the mean over the classes, each
/// against all others, by probabilities (softmax, unless the network ends with it); of target rows of 0 and 1 the mean over the
/// columns. NaN where a class has no samples or has all of them. Keeps two doubles a sample (of more classes, one a class and
/// one).
class Auc {
 public:
  static constexpr std::string_view name() { return "AUC"; }

  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) {
    detail::check_labels(outputs.count, labels.size(), "AUC");
    classes_ = outputs.width;
    by_label_ = true;
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      detail::check_label(label, outputs.width, "AUC");
      const auto row = outputs[i];
      if (outputs.width == 2) samples_.push_back(static_cast<double>(row[1]) - static_cast<double>(row[0]));
      else
        for (const Scalar output : row) samples_.push_back(static_cast<double>(output));
      samples_.push_back(label);
    }
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    detail::check_targets(outputs, targets, "AUC");
    classes_ = outputs.width;
    by_label_ = false;
    for (long i = 0; i < outputs.count; ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(outputs.width); ++j) {
        samples_.push_back(static_cast<double>(outputs[i][j]));
        samples_.push_back(targets[i][j] > Scalar(0.5) ? 1 : 0);
      }
  }
  /// So that a rank without samples knows the form of the others'.
  void begin(int outputs, int values) {
    samples_.clear();
    classes_ = outputs;
    by_label_ = values == 0;
  }
  /// The network ends with probabilities: their softmax has another order.
  void set_probabilities(bool given) { probabilities_ = given; }
  std::vector<double>& samples() { return samples_; }
  double value() const;

 private:
  double of_labels() const;
  double of_targets() const;

  std::vector<double> samples_;
  int classes_ = 0;
  bool by_label_ = true, probabilities_ = false;
};

/// The area under the ROC curve of these scores; the arguments are sorted. NaN where one of them is empty, or a score is NaN.
double area_under_curve(std::vector<double>& positive, std::vector<double>& negative);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "area_under_curve.ipp"
#endif
