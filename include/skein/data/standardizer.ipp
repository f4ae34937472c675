// SPDX-License-Identifier: Apache-2.0
// The bodies of standardizer.hpp.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "../core/hash.hpp"
#include "../core/text.hpp"
#include "standardizer.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Standardizer::Standardizer(DatasetView training) {
  if (training.size() == 0) throw ArgumentError("a Standardizer learns from training samples, and the data set has none");
  const auto n = static_cast<std::size_t>(training.sample_extents().count());
  std::vector<double> sample(n);
  const auto each = [&](auto&& f) {
    for (std::int64_t i = 0; i < training.size(); ++i) {
      training.gather(Indices(&i, 1), sample.data(), static_cast<long>(n));
      for (std::size_t j = 0; j < n; ++j) f(j, sample[j], i);
    }
  };
  const auto samples = static_cast<double>(training.size());
  mean_.assign(n, 0);
  deviation_.assign(n, 0);
  each([&](std::size_t j, double v, std::int64_t i) {
    if (!std::isfinite(v))
      throw ArgumentError(text("a Standardizer found a value that is not finite: number {} of sample {}", j, i));
    mean_[j] += v / samples;
  });
  each([&](std::size_t j, double v, std::int64_t) { deviation_[j] += (v - mean_[j]) * (v - mean_[j]) / samples; });
  for (std::size_t j = 0; j < n; ++j)
    deviation_[j] = deviation_of(deviation_[j], mean_[j], samples, text("value {} of samples", j));
}

SKEIN_INLINE std::uint64_t Standardizer::hash() const {
  Fnv1a hash;
  const auto add = [&](double value) { hash.add(std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))}); };
  for (std::size_t i = 0; i < size(); ++i) add(mean_[i]), add(deviation_[i]);
  return hash.value();
}

SKEIN_INLINE double Standardizer::deviation_of(double variance, double mean, double n, const std::string& what) {
  if (!std::isfinite(variance))
    throw ArgumentError(
        text("a Standardizer found {} so large that their squares are beyond what a double holds: divide them first", what));
  const double rounding = n * std::numeric_limits<double>::epsilon() * mean;
  return variance > rounding * rounding ? std::sqrt(variance) : 1;
}

SKEIN_INLINE void Standardizer::add(std::span<const double> numbers, bool standard, const std::string& what) {
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(numbers.size());
  if (standard) {
    for (const double v : numbers) mean += v / n;
    for (const double v : numbers) variance += (v - mean) * (v - mean) / n;
  }
  mean_.push_back(mean);
  deviation_.push_back(standard ? deviation_of(variance, mean, n, what) : 1);
}

}  // namespace skein::inline SKEIN_ABI::data
