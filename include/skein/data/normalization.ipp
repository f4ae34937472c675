// SPDX-License-Identifier: Apache-2.0
// The bodies of normalization.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "normalization.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE bool Normalization::identity() const {
  return std::all_of(mean.begin(), mean.end(), [](double m) { return m == 0; }) &&
         std::all_of(deviation.begin(), deviation.end(), [](double d) { return d == 1; });
}

SKEIN_INLINE bool Normalization::sound() const {
  return mean.size() == deviation.size() && std::isfinite(divisor) && divisor > 0 &&
         std::all_of(mean.begin(), mean.end(), [](double m) { return std::isfinite(m); }) &&
         std::all_of(deviation.begin(), deviation.end(), [](double d) { return std::isfinite(d) && d > 0; });
}

SKEIN_INLINE void Normalization::check_whole() const {
  if (!whole)
    throw ArgumentError(
        "keep: data::map changes the samples of this set by a function that is no Normalization, which a predictor would leave "
        "out: "
        "map it by a data::Normalization or a data::Standardizer; or keep the normalization of the set within the map, and apply "
        "the "
        "function to what is predicted too");
}

SKEIN_INLINE void Normalization::refuse(std::size_t values) const {
  throw ShapeError(text("a normalization of {} means and {} deviations was given a sample of {} values", mean.size(),
                        deviation.size(), values));
}

SKEIN_INLINE void detail::check_counts(const Normalization& n, const Extents& sample) {
  const std::size_t means = n.mean.size(), channels = static_cast<std::size_t>(sample.last());
  if (n.deviation.size() == means && (means <= 1 || means == channels || means == static_cast<std::size_t>(sample.count())))
    return;
  throw ShapeError(
      text("map: a normalization of {} means and {} deviations, and samples of {} values in {} channels: give one of both, or "
           "one for each channel, or one for each value",
           means, n.deviation.size(), sample.count(), channels));
}

SKEIN_INLINE Normalization Normalization::then(const Normalization& next) const {
  if (next.mean.empty()) return {mean, deviation, divisor, whole && next.whole};
  if (mean.empty()) return {next.mean, next.deviation, divisor, whole && next.whole};
  const std::size_t own = mean.size(), others = next.mean.size(), n = std::max(own, others);
  if (n % own != 0 || n % others != 0)
    throw ArgumentError(text(
        "a normalization of {} means is followed by one of {}: both are of the same channels or values, or one has a single mean",
        own, others));
  Normalization both{{}, {}, divisor, whole && next.whole};
  for (std::size_t c = 0; c < n; ++c) {
    both.mean.push_back(mean[c % own] + deviation[c % own] * next.mean[c % others]);
    both.deviation.push_back(deviation[c % own] * next.deviation[c % others]);
  }
  return both;
}

SKEIN_INLINE void check_raw(const Normalization& kept, const Normalization& set, const Extents& sample) {
  if (!set.identity())
    throw ArgumentError(
        "predict: the file keeps the normalization of the samples, and this data set is normalised already: give the raw set, "
        "without its normalize(...) (set.normalize(0, 1) of one in memory)");
  const std::size_t n = kept.mean.size();
  if (n > 1 && n != static_cast<std::size_t>(sample.last()) && n != static_cast<std::size_t>(sample.count()))
    throw ArgumentError(text("predict: the file keeps a normalization of {} channels, the samples have {}", n, sample.last()));
  const auto beyond = [](double x) { return x > 1; };
  if (set.divisor != 1 && kept.divisor == 1 &&
      (std::any_of(kept.mean.begin(), kept.mean.end(), beyond) ||
       std::any_of(kept.deviation.begin(), kept.deviation.end(), beyond)))
    throw ArgumentError(
        "predict: this data set has bytes, which are served as byte / 255, and the file keeps a normalization of "
        "values beyond 1: give the samples as numbers, as in the training");
}

SKEIN_INLINE std::string detail::formula_of(const Normalization& n) {
  const auto some = [](const std::vector<double>& all) {
    TextList list;
    for (std::size_t i = 0; i < all.size() && i < 3; ++i) list.add(all[i]);
    return all.size() > 3 ? list.text() + ", ..." : list.text();
  };
  if (n.mean.size() == 1) return "(value - " + some(n.mean) + ") / " + some(n.deviation);
  return "(value - mean) / deviation with the means " + some(n.mean) + " and the deviations " + some(n.deviation);
}

SKEIN_INLINE bool alike(const Normalization& one, const Normalization& other) {
  const std::size_t own = one.mean.size(), others = other.mean.size(), n = std::max(own, others);
  if (own == 0 || others == 0 || !one.whole || !other.whole || one.divisor != other.divisor) return true;
  if (n % own != 0 || n % others != 0) return false;
  for (std::size_t c = 0; c < n; ++c) {
    const double deviation = one.deviation[c % own], most = 1e-3 * deviation;
    if (!(std::abs(one.mean[c % own] - other.mean[c % others]) <= most) ||
        !(std::abs(deviation - other.deviation[c % others]) <= most))
      return false;
  }
  return true;
}

SKEIN_INLINE void check_alike(const Normalization& training, const Normalization& validation) {
  if (alike(training, validation)) return;
  throw ArgumentError("fit: the training set is served as " + detail::formula_of(training) + ", the validation set as " +
                      detail::formula_of(validation) +
                      ": give both the normalization of the training set, .validate = map(raw_test, train.normalization())");
}

SKEIN_INLINE void detail::KeptNormalization::refuse(double value) const {
  throw ArgumentError(
      text("predict: a sample has the value {}", value) +
      ", and the model was trained with bytes / 255, from 0 to 1: divide the values by 255, or give a data set of "
      "bytes (from_tensors of std::uint8_t)");
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
