// SPDX-License-Identifier: Apache-2.0
// The concept of a metric: a small value whose state is sums of doubles, so that ranks add theirs with one all-reduce; or what it
// keeps of each sample, where a measure of all samples is no function of sums. It is fed with the outputs of a batch and either
// labels or target rows, and says its value at the end. What it divides by is one of the sums.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// A batch of rows in host memory: outputs of a network, or targets. Does not own.
template <class Scalar> struct Rows {
  const Scalar* data = nullptr;
  long pitch = 0;  // from one row to the next
  long count = 0;  // rows
  int width = 0;   // values of a row that count

  constexpr std::span<const Scalar> operator[](long row) const { return {data + row * pitch, static_cast<std::size_t>(width)}; }
};

/// A label for each row of the outputs. Negative labels are left out (padding, or nothing known).
using Labels = std::span<const std::int32_t>;

/// The column of the greatest value, the first of equals; -1 where the row begins with NaN, so that it is never right.
template <class Scalar> constexpr int argmax(std::span<const Scalar> row) {
  int best = 0;
  for (int j = 1; j < static_cast<int>(row.size()); ++j)
    if (row[static_cast<std::size_t>(j)] > row[static_cast<std::size_t>(best)]) best = j;
  return !row.empty() && row[static_cast<std::size_t>(best)] == row[static_cast<std::size_t>(best)] ? best : -1;
}

/// Can be fed with outputs of type Rows<float> and labels.
template <class T> concept LabelMetric = requires(T metric, Rows<float> outputs, Labels labels) { metric.add(outputs, labels); };
/// Can be fed with outputs and targets of type Rows<float>.
template <class T> concept TargetMetric = requires(T metric, Rows<float> rows) { metric.add(rows, rows); };

/// Its state is sums, which ranks add up.
template <class T> concept HasSums = requires(T m) {
  { m.sums() } -> std::convertible_to<std::span<double>>;
};
/// It keeps as many doubles of each row that was added, in their order: those of all ranks are put together, in the order of the
/// data set, before value() is asked.
template <class T> concept KeepsSamples = requires(T m) {
  { m.samples() } -> std::same_as<std::vector<double>&>;
};
/// It is told the number of outputs of a row, and of values that they are compared with (0: a label), before the first batch; its
/// state is then as new.
template <class T> concept IsBegun = requires(T m) { m.begin(1, 1); };

namespace detail {
enum class MetricFault { None, Text, Name, Add, Sums, Value, Copy };

template <class T> consteval MetricFault metric_fault() {
  if (std::convertible_to<const T&, std::string_view>) return MetricFault::Text;
  if (!std::copy_constructible<T>) return MetricFault::Copy;
  if (!requires(const T m) {
        { m.name() } -> std::convertible_to<std::string_view>;
      })
    return MetricFault::Name;
  if (!LabelMetric<T> && !TargetMetric<T>) return MetricFault::Add;
  if (!HasSums<T> && !KeepsSamples<T>) return MetricFault::Sums;
  if (!requires(const T m) {
        { m.value() } -> std::convertible_to<double>;
      })
    return MetricFault::Value;
  return MetricFault::None;
}
}  // namespace detail

/// A measure of outputs: name(), add(outputs, labels or targets), sums() or samples(), value()
/// const, and begin(outputs, values) where its state has a size that is not known before.
template <class T> concept Metric = detail::metric_fault<T>()
== detail::MetricFault::None;

/// Says the first thing that keeps T from being a metric, in one sentence.
template <class T> consteval void assert_metric() {
  using enum detail::MetricFault;
  constexpr detail::MetricFault fault = detail::metric_fault<T>();
  static_assert(fault != Text,
                "a metric is an object and not its name: .metrics = {sk::train::R2{}}; docs/guide/train.md lists the metrics");
  static_assert(fault != Copy, "a metric is a small value: give it a copy constructor");
  static_assert(fault != Name, "a metric needs a name: std::string_view name() const");
  static_assert(fault != Add,
                "a metric must be fed: void add(Rows<Scalar> outputs, Labels labels), or with Rows<Scalar> targets, for float");
  static_assert(
      fault != Sums,
      "the state of a metric must be sums that ranks can add: std::span<double> sums(), all zero at the start; or what it "
      "keeps of each row: std::vector<double>& samples()");
  static_assert(fault != Value, "a metric needs its result: double value() const");
}

/// Back to the state before the first add.
template <Metric T> constexpr void clear(T& metric) {
  if constexpr (KeepsSamples<T>) metric.samples().clear();
  else
    for (double& sum : std::span<double>(metric.sums())) sum = 0;
}

}  // namespace skein::inline SKEIN_ABI::train
