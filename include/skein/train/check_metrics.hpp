// SPDX-License-Identifier: Apache-2.0
// Metrics that a fit or an evaluation refuses beforehand: without a name, of the same name, of the wrong kind of answers, of a
// class that is not there, or with a threshold that no output crosses; and what a fit measures, for those that watch it.
#pragma once
#include <vector>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "fit_facts.hpp"
#include "metrics/any_metric.hpp"
#include "records.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Throws ArgumentError for a metric without a name, and for two of one name: their values would go into one column.
inline void check_names(const std::vector<AnyMetric>& metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].name().empty())
      throw ArgumentError(text("metric {} of the {} in .metrics has no name: its name() returns nothing", i + 1, metrics.size()));
    for (std::size_t j = 0; j < i; ++j)
      if (metrics[i].has_column() && metrics[j].has_column() && metrics[i].name() == metrics[j].name())
        throw ArgumentError(
            text("two metrics of .metrics have the name '{}', so that one value would replace the other: give "
                 "each a name of its own",
                 metrics[i].name()));
  }
}
/// Throws ArgumentError where each output that a metric is fed with is on the same side of its threshold.
inline void check_thresholds(const FitFacts& facts, const std::vector<AnyMetric>& metrics) {
  if (facts.metric_values == 0) return;
  for (const AnyMetric& m : metrics)
    if (const double threshold = m.threshold(); m.of_probabilities(facts.probabilities) && (threshold <= 0 || threshold >= 1))
      throw ArgumentError(
          text("the metric '{}' takes outputs above {} for a yes, and its outputs are probabilities, from 0 "
               "to 1: its threshold is 0.5 then, as in BinaryAccuracy{0.5} and F1{-1, 0.5}; 0 is that of "
               "logits",
               m.name(), threshold));
}
/// Throws ArgumentError for a metric of class labels where the loss compares with target values, and the other way round: before
/// the first step, not after an epoch.
inline void check_kinds(const FitFacts& facts, const std::vector<AnyMetric>& metrics) {
  const bool labels = facts.metric_values == 0;
  for (const AnyMetric& m : metrics)
    if (m.takes_labels() != m.takes_targets() && m.takes_labels() != labels)
      refuse_truth(m.name(), "", "", m.takes_labels(), m.takes_targets());
}
/// All of it.
inline void check_metrics(const FitFacts& facts, const std::vector<AnyMetric>& metrics) {
  check_names(metrics);
  check_kinds(facts, metrics);
  for (const AnyMetric& m : metrics) m.check_outputs(facts.metric_width);
  check_thresholds(facts, metrics);
}

/// The record of an epoch with what a fit measures of it: zeros, with the metrics where there is a validation.
inline EpochRecord what_is_measured(const FitFacts& facts, bool validates, const std::vector<AnyMetric>& metrics) {
  EpochRecord record;
  record.training.loss = 0;
  if (facts.labels) record.training.accuracy = 0;
  if (!validates) return record;
  record.validation = record.training;
  for (const AnyMetric& m : metrics)
    if (m.has_column()) record.validation.set(m.name(), 0);
  return record;
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
