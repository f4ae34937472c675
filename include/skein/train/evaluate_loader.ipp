// SPDX-License-Identifier: Apache-2.0
// The bodies of evaluate_loader.hpp.
#pragma once
#include <span>

#include "evaluate_loader.hpp"
#include "metrics/gather_samples.hpp"
#include "metrics/metrics_in_evaluation.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE data::LoaderOptions evaluation_options(const FitFacts& facts, long batch, const char* name) {
  data::LoaderOptions o = facts.loader;
  o.name = name;
  o.batch = batch;
  o.shuffle = false;
  o.ranks = facts.parts;
  o.rank = facts.part;
  o.prefetch = data::Prefetch::off;
  return o;
}

/// The metrics become those of all ranks. `rows`: of the whole data set, those whose samples metrics have kept; `count`: of all.
template <class Scalar> void reduce_metrics(EvaluatedTraining<Scalar>& training, std::vector<AnyMetric>& metrics,
                                            const std::vector<std::int64_t>& rows, std::int64_t count) {
  const auto reduce = [&](std::span<double> values) { training.reduce(values); };
  for (AnyMetric& m : metrics)
    if (std::vector<double>* of_rows = m.samples()) gather_samples(*of_rows, {rows.data(), rows.size()}, count, reduce, m.name());
    else reduce(m.sums());
}

template <class Scalar> Scores evaluate_loader(EvaluatedTraining<Scalar>& training, const FitFacts& facts,
                                               data::Loader<Scalar>& loader, std::vector<AnyMetric>& metrics) {
  const MetricsInEvaluation alone(metrics);
  double samples = 0, ignored = 0;
  bool more = false, kept = false;
  std::vector<std::int64_t> rows;  // of the whole data set: those that metrics keep samples of
  const auto begin = [&] {
    for (AnyMetric& m : metrics)
      m.begin(facts.metric_width, facts.metric_values, facts.probabilities), kept = kept || m.samples();
  };
  begin();
  for (const data::Batch<Scalar>& batch : loader.epoch(0)) {
    training.evaluate(batch, more);
    more = true;
    samples += static_cast<double>(batch.count);
    if (facts.labels && facts.scores) ignored += static_cast<double>(training.ignored_labels(batch));
    if (!metrics.empty()) training.feed(metrics, batch);
    for (long i = 0; kept && i < batch.count * facts.metric_rows; ++i)
      rows.push_back(batch.indices[i / facts.metric_rows] * facts.metric_rows + i % facts.metric_rows);
  }
  const nn::LossSums sums = more ? training.sums() : nn::LossSums{};
  double totals[5] = {sums.loss, sums.weight, sums.correct, samples, ignored};
  if (!facts.scores) {  // another rank of the pipeline has the outputs
    for (double& t : totals) t = 0;
    rows.clear();
    begin();
  }
  training.reduce(totals);
  reduce_metrics(training, metrics, rows, static_cast<std::int64_t>(totals[3]) * facts.metric_rows);
  Scores found;
  found.loss = totals[1] > 0 ? totals[0] / totals[1] : not_measured;                      // a 0 would be the best loss
  const double counted = totals[3] * static_cast<double>(facts.labels_each) - totals[4];  // whole numbers
  if (facts.labels) found.accuracy = counted > 0 ? totals[2] / counted : not_measured;
  for (const AnyMetric& m : metrics)
    if (m.has_column()) found.set(m.name(), m.value());
  return found;
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
