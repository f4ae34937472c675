// SPDX-License-Identifier: Apache-2.0
// A metric of one output of a Graph: it sees the columns of that output, and of the targets those that the output's loss
// compares with.
//
//     trainer.fit(training, {.validate = validation, .metrics = {train::metric_on<digit>(loss, train::Accuracy{}, "digit")}});
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../nn/loss/graph_loss.hpp"
#include "../metric.hpp"
#include "any_metric.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Inner, fed with some columns of rows of outputs and targets. A class number that is `ignored` is -1 to it. See metric_on().
template <class Inner> class GraphMetric {
 public:
  /// `probabilities`: that output ends with Softmax or Sigmoid, whatever others do.
  GraphMetric(Inner inner, nn::LossColumns columns, std::string_view output, std::optional<std::int32_t> ignored = {},
              bool probabilities = false)
      : inner_(std::move(inner)), columns_(columns), ignored_(ignored), probabilities_(probabilities),
        name_(std::string(output) + " " + std::string(inner_.name())) {
    if constexpr (HearsOfProbabilities<Inner>) inner_.set_probabilities(probabilities);
  }

  /// "digit accuracy"
  std::string_view name() const { return name_; }
  /// Throws ArgumentError where the metric cannot be fed with the columns of its output.
  void check_outputs(int) const requires ChecksOutputs<Inner> { inner_.check_outputs(static_cast<int>(columns_.width)); }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    const Rows<Scalar> own{outputs.data + columns_.output, outputs.pitch, outputs.count, static_cast<int>(columns_.width)};
    const Rows<Scalar> wanted{targets.data + columns_.target, targets.pitch, targets.count, static_cast<int>(columns_.values)};
    if constexpr (LabelMetric<Inner>) {
      labels_.clear();
      for (long i = 0; i < wanted.count; ++i) {
        const std::int32_t label = nn::detail::class_number(wanted[i][0]);
        labels_.push_back(ignored_ && label == *ignored_ ? -1 : label);
      }
      inner_.add(own, Labels(labels_));
    } else {
      inner_.add(own, wanted);
    }
  }
  void begin(int, int) {
    if constexpr (IsBegun<Inner>)
      inner_.begin(static_cast<int>(columns_.width), columns_.labels ? 0 : static_cast<int>(columns_.values));
    else clear(inner_);
  }
  std::span<double> sums() requires HasSums<Inner> { return inner_.sums(); }
  std::vector<double>& samples() requires KeepsSamples<Inner> { return inner_.samples(); }
  double value() const { return inner_.value(); }
  /// The inner metric's threshold where it is fed with target rows; NaN where it is fed with labels.
  double threshold() const requires HasThreshold<Inner> {
    return columns_.labels ? std::numeric_limits<double>::quiet_NaN() : inner_.threshold();
  }
  /// Whether its columns are probabilities.
  bool of_probabilities() const { return probabilities_; }
  /// The metric that it feeds: of a confusion matrix the counts.
  const Inner& metric() const { return inner_; }

 private:
  Inner inner_;
  nn::LossColumns columns_;
  std::optional<std::int32_t> ignored_;
  bool probabilities_;
  std::string name_;
  std::vector<std::int32_t> labels_;
};

/// `metric` of the output Name of a network that is trained with this GraphLoss; it is called "<output> <metric's own name>". A
/// label that the loss of that output ignores does not count.
template <class Name, class Loss, class Inner>
GraphMetric<Inner> metric_on(const Loss& loss, Inner metric, std::string_view output) {
  constexpr nn::LossColumns columns = Loss::template columns_of<Name>();
  static_assert(LabelMetric<Inner> == columns.labels || TargetMetric<Inner> != columns.labels,
                "metric_on: this output's loss compares with a class number where the metric takes targets, or the other way");
  constexpr bool probabilities = Loss::template output_kind<Name> == nn::OutputKind::probabilities;
  return {std::move(metric), columns, output, loss.template ignored_label_of<Name>(), probabilities};
}

}  // namespace skein::inline SKEIN_ABI::train
