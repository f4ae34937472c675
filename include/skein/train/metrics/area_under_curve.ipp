// SPDX-License-Identifier: Apache-2.0
// The bodies of area_under_curve.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "area_under_curve.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Sorts numbers, none of them NaN, as std::sort does, in a time that grows as their count: the bits of a double, turned around
/// where it is negative, are ordered as integers are, and are sorted digit by digit. A digit that all share costs no pass.
SKEIN_INLINE void sort_numbers(std::vector<double>& numbers) {
  constexpr std::size_t digits = 6, width = 11, values = std::size_t{1} << width, few = 4 * values;
  if (numbers.size() < few) {
    std::sort(numbers.begin(), numbers.end());
    return;
  }
  const auto key = [](double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    return bits ^ (static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> 63) | std::uint64_t{1} << 63);
  };
  const auto digit = [](std::uint64_t k, std::size_t d) { return static_cast<std::size_t>(k >> (d * width)) & (values - 1); };
  std::vector<std::array<std::size_t, values>> counts(digits);
  for (const double number : numbers)
    for (std::size_t d = 0; d < digits; ++d) ++counts[d][digit(key(number), d)];
  std::vector<double> sorted(numbers.size());
  for (std::size_t d = 0; d < digits; ++d) {
    if (counts[d][digit(key(numbers.front()), d)] == numbers.size()) continue;
    std::array<double*, values> places;
    double* place = sorted.data();
    for (std::size_t v = 0; v < values; ++v) places[v] = std::exchange(place, place + counts[d][v]);
    for (const double number : numbers) *places[digit(key(number), d)]++ = number;
    numbers.swap(sorted);
  }
}
}  // namespace detail

SKEIN_INLINE double area_under_curve(std::vector<double>& positive, std::vector<double>& negative) {
  if (positive.empty() || negative.empty()) return std::nan("");
  for (std::vector<double>* scores : {&positive, &negative}) {
    for (const double score : *scores)
      if (score != score) return score;
    detail::sort_numbers(*scores);
  }
  double pairs = 0;
  auto below = negative.begin(), up_to = negative.begin();
  for (const double score : positive) {
    while (below != negative.end() && *below < score) ++below;
    while (up_to != negative.end() && *up_to <= score) ++up_to;
    pairs += 0.5 * static_cast<double>((below - negative.begin()) + (up_to - negative.begin()));
  }
  return pairs / (static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

SKEIN_INLINE double Auc::value() const { return samples_.empty() ? std::nan("") : by_label_ ? of_labels() : of_targets(); }

SKEIN_INLINE double Auc::of_labels() const {
  const std::size_t classes = static_cast<std::size_t>(classes_), scores = classes == 2 ? 1 : classes;
  std::vector<double> probabilities;
  const bool of_logits = classes > 2 && !probabilities_;
  if (of_logits) {
    probabilities = samples_;
    for (auto row = probabilities.begin(); row != probabilities.end(); row += static_cast<long>(scores) + 1) {
      const auto end = row + static_cast<long>(scores);
      const double greatest = *std::max_element(row, end);
      double sum = 0;
      for (auto p = row; p != end; ++p) sum += * p = std::exp(*p - greatest);
      for (auto p = row; p != end; ++p) *p /= sum;
    }
  }
  const std::vector<double>& rows = of_logits ? probabilities : samples_;
  double sum = 0;
  std::vector<double> of_class[2];
  for (std::size_t c = 0; c < scores; ++c) {
    const double wanted = classes == 2 ? 1 : static_cast<double>(c);
    for (auto& s : of_class) s.clear(), s.reserve(rows.size() / (scores + 1));
    for (std::size_t at = 0; at < rows.size(); at += scores + 1)
      if (const double label = rows[at + scores]; label >= 0) of_class[label == wanted].push_back(rows[at + c]);
    sum += area_under_curve(of_class[1], of_class[0]);
  }
  return sum / static_cast<double>(scores);
}

SKEIN_INLINE double Auc::of_targets() const {
  const auto columns = static_cast<std::size_t>(classes_);
  double sum = 0;
  std::vector<double> of_class[2];
  for (std::size_t c = 0; c < columns; ++c) {
    for (auto& s : of_class) s.clear();
    for (std::size_t at = 2 * c; at < samples_.size(); at += 2 * columns)
      of_class[samples_[at + 1] > 0.5].push_back(samples_[at]);
    sum += area_under_curve(of_class[1], of_class[0]);
  }
  return sum / static_cast<double>(columns);
}

}  // namespace skein::inline SKEIN_ABI::train
