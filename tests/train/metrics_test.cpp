// SPDX-License-Identifier: Apache-2.0
// Metrics as fit and evaluate() take them, that is by evaluate_loader(), and what ranks add up of them.
#include <skein/core/random.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/metrics/gather_samples.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "fixtures/tables.hpp"

using namespace skein::train;

static_assert(Metric<Auc> && Metric<R2> && Metric<F1> && LabelMetric<Auc> && TargetMetric<Auc> && KeepsSamples<Auc> &&
              HasSums<F1>);
static_assert(Metric<Accuracy> && Metric<TopK> && Metric<BinaryAccuracy> && Metric<ConfusionMatrix> && Metric<MeanAbsoluteError>);
static_assert(LabelMetric<Accuracy> && !TargetMetric<Accuracy> && TargetMetric<MeanAbsoluteError> &&
              !LabelMetric<MeanAbsoluteError>);
static_assert(!Metric<int>);

namespace {
const float nan_value = std::nanf("");
// 4 samples of 3 classes, rows 4 apart: the gap holds what would win if it were looked at.
const std::vector<float> outputs = {0.1f, 0.7f, 0.2f, 99, 0.5f, 0.5f, 0.1f, 99, 0.3f, 0.2f, 0.9f, 99, nan_value, 0, 0, 99};
const Rows<float> rows{outputs.data(), 4, 4, 3};
using Truth = std::vector<std::int32_t>;

struct Random {
  std::vector<float> outputs;
  Truth labels;
  Rows<float> rows;
};
Random random(std::uint64_t key, long count, int width, int levels) {
  Random r{std::vector<float>(static_cast<std::size_t>(count * width)), Truth(static_cast<std::size_t>(count)), {}};
  for (std::size_t i = 0; i < r.outputs.size(); ++i)  // few levels: many equal outputs
    r.outputs[i] = static_cast<float>(skein::random_below(key, 0, i, static_cast<std::uint64_t>(levels)));
  for (std::size_t i = 0; i < r.labels.size(); ++i)
    r.labels[i] = static_cast<std::int32_t>(skein::random_below(key, 1, i, static_cast<std::uint64_t>(width) + 1)) - 1;
  r.rows = {r.outputs.data(), width, count, width};
  return r;
}
/// The classes by falling output, the first of equals first.
std::vector<int> order(std::span<const float> row) {
  std::vector<int> all(row.size());
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return row[std::size_t(a)] > row[std::size_t(b)]; });
  return all;
}
}  // namespace

TEST_CASE("accuracy by hand: ties go to the first, NaN is never right, negative labels are left out") {
  Accuracy metric;
  CHECK(std::isnan(metric.value()));
  metric.add(rows, Truth{1, 0, 1, 0});
  CHECK(metric.value() == 0.5);
  metric.add(rows, Truth{1, 1, -1, -100});  // one hit of two
  CHECK(metric.value() == 0.5);
  CHECK(metric.sums()[0] == 3);
  CHECK(metric.sums()[1] == 6);
  clear(metric);
  CHECK(std::isnan(metric.value()));
}

TEST_CASE("metrics refuse labels and targets that do not fit") {
  Accuracy accuracy;
  CHECK_THROWS_WITH(accuracy.add(rows, Truth{0, 0, 0, 3}),
                    "accuracy: label 3 for outputs of 3 classes; labels run from 0, and negative ones are left out");
  CHECK_THROWS_WITH(accuracy.add(rows, Truth{0, 0}), "accuracy: 4 outputs, but 2 labels");
  CHECK_THROWS_WITH(TopK{0}, "top-k accuracy of k = 0: k is at least 1");
  CHECK_THROWS_WITH(TopK{4}.add(rows, Truth{0, 0, 0, 0}),
                    "top-k accuracy of k = 4: the outputs are of 3 classes, and k is at most that");
  ConfusionMatrix matrix{4};
  CHECK_THROWS_WITH(matrix.add(rows, Truth{0, 0, 0, 0}), "confusion matrix of 4 classes: the outputs have 3");
  CHECK_THROWS_AS(ConfusionMatrix{0}, skein::ArgumentError);
  MeanAbsoluteError error;
  CHECK_THROWS_WITH(error.add(rows, Rows<float>{outputs.data(), 4, 3, 2}),
                    "mean absolute error: outputs (4, 3), but targets (3, 2)");
  const std::vector<float> soft{1, 0, 0.25f};
  CHECK_THROWS_WITH(F1{}.add(Rows<float>{outputs.data(), 1, 3, 3}, Rows<float>{soft.data(), 1, 3, 3}),
                    "F1: a target is 0.25, and it counts targets that are 0 or 1, as yes and no: of other numbers "
                    "train::MeanAbsoluteError and train::R2 say how near the outputs are");
}

TEST_CASE("top-k against a sort, and top-1 is the accuracy") {
  for (const int levels : {3, 1000000}) {
    const Random r = random(17, 500, 7, levels);
    for (int k = 1; k <= 7; ++k) {
      TopK metric{k};
      metric.add(r.rows, r.labels);
      double hits = 0, all = 0;
      for (long i = 0; i < r.rows.count; ++i) {
        const int label = r.labels[std::size_t(i)];
        if (label < 0) continue;
        const auto best = order(r.rows[i]);
        hits += std::find(best.begin(), best.begin() + k, label) != best.begin() + k;
        all += 1;
      }
      CHECK(metric.value() == hits / all);
      CHECK(metric.name() == "top-" + std::to_string(k));
      if (k == 1) {
        Accuracy accuracy;
        accuracy.add(r.rows, r.labels);
        CHECK(accuracy.value() == metric.value());
      }
      if (k >= 7) CHECK(metric.value() == 1);
    }
  }
}

TEST_CASE("top-k: an output that is NaN is in no top") {
  TopK metric{3};
  metric.add(rows, Truth{-1, -1, -1, 0});
  CHECK(metric.value() == 0);
}

TEST_CASE("confusion matrix against counting, and its measures by hand") {
  const Random r = random(3, 400, 5, 4);
  ConfusionMatrix matrix{5};
  matrix.add(r.rows, r.labels);
  for (int truth = 0; truth < 5; ++truth)
    for (int as = 0; as < 5; ++as) {
      int n = 0;
      for (long i = 0; i < r.rows.count; ++i) n += r.labels[std::size_t(i)] == truth && order(r.rows[i])[0] == as;
      CHECK(matrix.at(truth, as) == n);
    }
  Accuracy accuracy;
  accuracy.add(r.rows, r.labels);
  CHECK(matrix.value() == Approx(accuracy.value()));

  ConfusionMatrix small{2};
  const float yes[] = {0, 1}, no[] = {1, 0};
  const auto add = [&](const float* output, int label, int times) {
    for (int i = 0; i < times; ++i) small.add(Rows<float>{output, 2, 1, 2}, Truth{label});
  };
  CHECK(std::isnan(small.value()));
  add(yes, 1, 6), add(no, 1, 2), add(yes, 0, 1), add(no, 0, 11);
  CHECK(small.recall(1) == Approx(6.0 / 8));
  CHECK(small.precision(1) == Approx(6.0 / 7));
  CHECK(small.f1(1) == Approx(12.0 / 15));
  CHECK(small.value() == Approx(17.0 / 20));
  for (const int none : {-1, 2, 100000}) {
    const std::string said = "confusion matrix: there is no class " + std::to_string(none) + ": classes are numbered from 0 to 1";
    CHECK_THROWS_WITH(small.recall(none), said);
    CHECK_THROWS_WITH(small.precision(none), said);
    CHECK_THROWS_WITH(small.f1(none), said);
    CHECK_THROWS_WITH(small.at(0, none), said);
    CHECK_THROWS_WITH(small.at(none, 1), said);
  }
  CHECK(small.text() == "true\\as      0      1  recall\n      0     11      1  91.7 %\n      1      2      6  75.0 %\n");
}

TEST_CASE("a confusion matrix has names of classes, as a text and as a picture") {
  ConfusionMatrix matrix{{"cat", "wild <dog>"}};
  const float outputs[] = {1, 0, 0, 1, 0, 1};
  matrix.add(Rows<float>{outputs, 2, 3, 2}, Truth{0, 1, 0});
  CHECK(matrix.text() ==
        "    true\\as        cat wild <dog>  recall\n"
        "        cat          1          1  50.0 %\n"
        " wild <dog>          0          1  100.0 %\n");
  const std::string svg = matrix.svg();
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find("wild &lt;dog&gt;") != std::string::npos);
  CHECK(ConfusionMatrix{500}.svg().size() > 1000);
}

TEST_CASE("precision, recall, F1, AUC and R2 are scikit-learn's") {
  using fixtures::class_scores;
  const Rows<double> scores{class_scores.data(), 3, 40, 3}, logits{fixtures::binary_logits.data(), 1, 40, 1};
  const Truth labels(fixtures::class_labels.begin(), fixtures::class_labels.end());
  const std::vector<double> truth(fixtures::binary_truth.begin(), fixtures::binary_truth.end());
  const Rows<double> wanted{truth.data(), 1, 40, 1};
  const auto of_labels = [&](auto metric) { return metric.add(scores, labels), metric.value(); };
  const auto of_targets = [&](auto metric) { return metric.add(logits, wanted), metric.value(); };
  const auto same = [](double value, double expected) { CHECK(value == Approx(expected).epsilon(1e-12)); };
  same(of_labels(Precision{}), fixtures::precision_macro[0]);
  same(of_labels(Recall{}), fixtures::recall_macro[0]);
  same(of_labels(F1{}), fixtures::f1_macro[0]);
  for (int c = 0; c < 3; ++c) {
    same(of_labels(Precision{c}), fixtures::precision_of_classes[std::size_t(c)]);
    same(of_labels(Recall{c}), fixtures::recall_of_classes[std::size_t(c)]);
    same(of_labels(F1{c}), fixtures::f1_of_classes[std::size_t(c)]);
  }
  same(of_targets(Precision{}), fixtures::precision_binary[0]);
  same(of_targets(Recall{}), fixtures::recall_binary[0]);
  same(of_targets(F1{}), fixtures::f1_binary[0]);
  same(of_targets(Auc{}), fixtures::auc_binary[0]);
  same(of_labels(Auc{}), fixtures::auc_ovr_macro[0]);
  R2 r2;
  r2.add(Rows<double>{fixtures::regression_outputs.data(), 2, 40, 2},
         Rows<double>{fixtures::regression_targets.data(), 2, 40, 2});
  same(r2.value(), fixtures::r2_uniform[0]);
  CHECK(std::isnan(Auc{}.value()));
  CHECK(std::isnan(F1{}.value()));
  CHECK(std::isnan(R2{}.value()));
  CHECK(F1{2}.name() == "F1 of 2");
  CHECK_THROWS_WITH(of_labels(F1{3}), "F1 of 3: there are 3 classes, numbered from 0");
}

TEST_CASE("R2 of targets that are all the same is 1 or 0, whatever their number and their rounding; one that is NaN is seen") {
  for (const float level : {0.1f, 3.3f, 1e6f + 0.3f})
    for (const long count : {3L, 1000L, 20000L}) {
      const std::vector<float> targets(std::size_t(count), level), others(std::size_t(count), level + 0.5f);
      const Rows<float> wanted{targets.data(), 1, count, 1}, wrong{others.data(), 1, count, 1};
      R2 right, off;
      right.add(wanted, wanted), off.add(wrong, wanted);
      CHECK(right.value() == 1);
      CHECK(off.value() == 0);
    }
  std::vector<float> targets(100000), outputs(100000);  // 1e5 times their deviation away from 0
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = 1e5f + float(i % 4), outputs[i] = targets[i] + 0.5f;
  R2 far;
  far.add(Rows<float>{outputs.data(), 1, 100000, 1}, Rows<float>{targets.data(), 1, 100000, 1});
  CHECK(far.value() == Approx(0.8).epsilon(1e-5));
  targets[7] = nan_value;
  R2 lost;
  lost.add(Rows<float>{outputs.data(), 1, 100, 1}, Rows<float>{targets.data(), 1, 100, 1});
  CHECK(std::isnan(lost.value()));
}

TEST_CASE("AUC against counting pairs, with many equal scores, negative labels and a NaN") {
  const Random r = random(11, 300, 2, 6);
  Auc metric;
  metric.add(r.rows, r.labels);
  double pairs = 0, wins = 0;
  const auto score = [&](long i) { return r.rows[i][1] - r.rows[i][0]; };
  for (long i = 0; i < 300; ++i)
    for (long j = 0; j < 300; ++j) {
      if (r.labels[std::size_t(i)] != 1 || r.labels[std::size_t(j)] != 0) continue;
      pairs += 1;
      wins += score(i) > score(j) ? 1 : score(i) == score(j) ? 0.5 : 0;
    }
  CHECK(metric.value() == Approx(wins / pairs).epsilon(1e-14));
  const float scores[] = {nan_value, 0};
  metric.add(Rows<float>{scores, 2, 1, 2}, Truth{1});
  CHECK(std::isnan(metric.value()));
}

TEST_CASE("AUC of probabilities takes them as they are") {
  const float rows[] = {0.5f, 0.5f, 0, 0.49f, 0.255f, 0.255f, 0.1f, 0.2f, 0.7f};  // the softmax of row 1 is above that of row 0
  const std::int32_t labels[] = {0, 1, 2};
  const auto value = [&](bool probabilities) {
    AnyMetric metric{Auc{}};
    metric.begin(3, 0, probabilities);
    metric.add(Rows<float>{rows, 3, 3, 3}, Labels(labels));
    return metric.value();
  };
  CHECK(value(true) == Approx((1 + 0.5 + 1) / 3));
  CHECK(value(false) < value(true));
}

TEST_CASE("AUC of many scores sorts them as std::sort does: signs, both zeros, infinities, ties, numbers next to zero") {
  std::vector<double> scores[2], sorted[2];
  const double infinity = std::numeric_limits<double>::infinity(), special[] = {0.0, -0.0, infinity, -infinity, 5e-324, -5e-324};
  for (std::uint64_t i = 0; i < 40000; ++i) {
    const double even = 0.01 * static_cast<double>(skein::random_below(12, 0, i, 200)) - 1;  // ties, within and between classes
    const double score = i % 7 == 0   ? special[i / 7 % 6]
                         : i % 2 == 0 ? even
                                      : skein::random_normal(13, 0, i) * std::exp2(i % 300);
    scores[skein::random_below(14, 0, i, 4) == 0].push_back(score);
  }
  for (int c = 0; c < 2; ++c) {
    sorted[c] = scores[c];
    std::sort(sorted[c].begin(), sorted[c].end());
  }
  double pairs = 0;
  for (const double score : sorted[1]) {
    const auto [below, up_to] = std::equal_range(sorted[0].begin(), sorted[0].end(), score);
    pairs += 0.5 * static_cast<double>((below - sorted[0].begin()) + (up_to - sorted[0].begin()));
  }
  CHECK(area_under_curve(scores[1], scores[0]) ==
        pairs / (static_cast<double>(sorted[1].size()) * static_cast<double>(sorted[0].size())));
  CHECK((scores[0] == sorted[0] && scores[1] == sorted[1]));
}

TEST_CASE("a metric of all samples sees them together, in the order of the data set") {
  AllSamples last{"last", [](Rows<double> outputs, Labels labels) { return outputs[outputs.count - 1][0] + labels.back(); }};
  const float outputs[] = {1, 2, 3, 4};
  last.begin(1, 0);
  last.add(Rows<float>{outputs, 1, 2, 1}, Truth{10, 20});
  last.add(Rows<float>{outputs + 2, 1, 2, 1}, Truth{30, 40});
  CHECK(last.value() == 44);
  // Two ranks, as one all-reduce after the other sees them.
  std::vector<double> first = {1, 10, 3, 30}, second = {2, 20};
  const std::vector<std::int64_t> rows_of_first = {0, 2}, rows_of_second = {1};
  std::vector<std::vector<double>> sent;
  gather_samples(
      first, rows_of_first, 3,
      [&](std::span<double> values) {
        if (sent.empty()) values[0] = 6, values[1] = 3, values[3] = 12;
        sent.emplace_back(values.begin(), values.end());
      },
      "last");
  CHECK(first == std::vector<double>{1, 10, 0, 0, 3, 30});
  gather_samples(
      second, rows_of_second, 3,
      [&](std::span<double> values) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = values.size() == 4 ? sent[0][i] : values[i] + sent[1][i];
      },
      "last");
  CHECK(second == std::vector<double>{1, 10, 2, 20, 3, 30});
  // One that keeps nothing of a row; ranks that keep different numbers of a row, by the sums of both.
  std::vector<double> fewer = {1, 3}, more = {1, 10, 2, 20, 3, 30};
  const std::vector<std::int64_t> rows = {0, 1, 2};
  const std::string says =
      "the metric 'kept' has kept 2 numbers of 3 rows on this rank: samples() has as many numbers of each row";
  CHECK_THROWS_WITH(gather_samples(
                        fewer, rows, 3, [](std::span<double>) {}, "kept"),
                    Catch::StartsWith(says));
  CHECK_THROWS_AS(gather_samples(
                      more, rows, 6, [](std::span<double> v) { v[0] = 9, v[1] = 6, v[3] += 3; }, "kept"),
                  skein::ArgumentError);
}

TEST_CASE("mean absolute error and binary accuracy by hand, in float and double") {
  const float out[] = {1, -2, 99, 0.5f, 4, 99}, truth[] = {0, 0, 1, 1};
  MeanAbsoluteError error;
  error.add(Rows<float>{out, 3, 2, 2}, Rows<float>{truth, 2, 2, 2});
  CHECK(error.value() == (1 + 2 + 0.5 + 3) / 4);
  const double wide[] = {0.25}, zero[] = {0};
  error.add(Rows<double>{wide, 1, 1, 1}, Rows<double>{zero, 1, 1, 1});
  CHECK(error.value() == (6.5 + 0.25) / 5);

  BinaryAccuracy logits, probabilities{0.5};
  logits.add(Rows<float>{out, 3, 2, 2}, Rows<float>{truth, 2, 2, 2});
  CHECK(logits.value() == 0.75);
  probabilities.add(Rows<float>{out, 3, 2, 2}, Rows<float>{truth, 2, 2, 2});
  CHECK(probabilities.value() == 0.5);
}

TEST_CASE("an own function of a sample, with labels and with targets") {
  OwnMetric margin{"margin", [](auto output, int label) { return double(output[std::size_t(label)]) - double(output[0]); }};
  static_assert(Metric<decltype(margin)> && LabelMetric<decltype(margin)>);
  margin.add(rows, Truth{1, 1, 2, -1});
  CHECK(margin.value() == Approx((0.6 + 0.0 + 0.6) / 3));
  OwnMetric within{"within 0.1", [](std::span<const float> output, std::span<const float> target) {
                     return std::fabs(output[0] - target[0]) < 0.1f ? 1.0 : 0.0;
                   }};
  static_assert(Metric<decltype(within)> && TargetMetric<decltype(within)>);
  const float target[] = {0.15f, 0.7f, 0.35f, 0};
  within.add(rows, Rows<float>{target, 1, 4, 1});
  CHECK(within.value() == 0.5);
}

TEST_CASE("a confusion matrix adds no column beside the accuracy") {
  ConfusionMatrix matrix{3};
  CHECK_FALSE(AnyMetric{std::ref(matrix)}.has_column());
  CHECK(AnyMetric{TopK{2}}.has_column());
}

TEST_CASE("an own metric of several sums, over ranks too, and behind AnyMetric") {
  const auto counts = [](auto output, int label) {
    const bool says = output[1] > output[0], is = label == 1;
    return std::array<double, 2>{says && is ? 1.0 : 0.0, says ? 1.0 : 0.0};
  };
  const auto precision = [](std::array<double, 2> sums) { return sums[0] / sums[1]; };
  OwnMetric whole{"precision", counts, precision}, first = whole, second = whole;
  CHECK(std::isnan(whole.value()));
  const float out[] = {0, 1, 1, 0, 0, 1, 0, 1, 1, 0};  // says 1, 0, 1, 1, 0
  const Rows<float> five{out, 2, 5, 2}, head{out, 2, 2, 2}, tail{out + 4, 2, 3, 2};
  whole.add(five, Truth{1, 1, 0, 1, -1});
  CHECK(whole.value() == Approx(2.0 / 3));
  first.add(head, Truth{1, 1});
  second.add(tail, Truth{0, 1, -1});
  for (std::size_t i = 0; i < first.sums().size(); ++i) first.sums()[i] += second.sums()[i];
  CHECK(first.value() == whole.value());
  AnyMetric any{OwnMetric{whole}};
  CHECK((any.takes_labels() && !any.takes_targets()));
  any.add(five, Truth{1, 1, 0, 1, -1});
  CHECK(any.value() == whole.value());
  clear(whole);
  CHECK(std::isnan(whole.value()));
}

TEST_CASE("sums added over ranks give the value of one rank that saw all") {
  const Random r = random(5, 301, 6, 9);
  TopK whole{2}, first{2}, second{2};
  whole.add(r.rows, r.labels);
  const long cut = 100;
  first.add(Rows<float>{r.rows.data, 6, cut, 6}, Labels(r.labels).first(cut));
  second.add(Rows<float>{r.rows.data + cut * 6, 6, 301 - cut, 6}, Labels(r.labels).subspan(cut));
  for (std::size_t i = 0; i < first.sums().size(); ++i) first.sums()[i] += second.sums()[i];
  CHECK(first.value() == whole.value());
}

TEST_CASE("any metric: copies count for themselves, a reference for the user's, and it refuses the wrong food") {
  ConfusionMatrix matrix{3};
  std::vector<AnyMetric> all = {Accuracy{}, TopK{2}, std::ref(matrix)};
  std::vector<AnyMetric> copies = all;
  for (AnyMetric& metric : all) metric.add(rows, Truth{1, 0, 1, 0});
  CHECK(all[0].value() == 0.5);
  CHECK(std::isnan(copies[0].value()));
  CHECK(matrix.at(1, 1) == 1);
  CHECK(all[1].name() == "top-2");
  CHECK((all[0].takes_labels() && !all[0].takes_targets()));
  CHECK_THROWS_WITH(all[0].add(rows, rows),
                    "metric 'accuracy' is for class labels, and these samples have target values: take R2, MeanAbsoluteError or "
                    "an OwnMetric; of one output of a Graph metric_on");
}
