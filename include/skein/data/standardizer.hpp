// SPDX-License-Identifier: Apache-2.0
// Standardizer: each value of a sample minus its mean, over its deviation, as learnt on the training data:
//
//     const sk::data::Standardizer standard(train);
//     const auto x = sk::data::map(train, standard), y = sk::data::map(test, standard);
//     trainer.keep("standardizer", standard);  // goes into the file with the model
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "normalization.hpp"
#include "view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Mean and (population) deviation of each value of a sample. A value that never changes has the deviation 1.
class Standardizer {
 public:
  Standardizer() = default;
  /// Learns from these samples, in two passes in double. Throws ArgumentError where there is none, or a value is not finite.
  explicit Standardizer(DatasetView training);

  std::size_t size() const { return mean_.size(); }
  double mean(std::size_t value) const { return mean_[value]; }
  double deviation(std::size_t value) const { return deviation_[value]; }

  /// The hash of all means and deviations as floats, since another machine may find them with another last digit.
  std::uint64_t hash() const;
  /// For Trainer::keep: keep(map(train, standardizer).normalization()).
  Normalization normalization() const { return {mean_, deviation_}; }
  /// Normalises one sample, in place; what data::map takes. Throws ShapeError for another number of values.
  template <class T> void operator()(std::span<T> sample) const {
    check(sample.size());
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] = static_cast<T>((static_cast<double>(sample[i]) - mean_[i]) / deviation_[i]);
  }
  /// Back again, in place.
  template <class T> void restore(std::span<T> sample) const {
    check(sample.size());
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] = static_cast<T>(static_cast<double>(sample[i]) * deviation_[i] + mean_[i]);
  }

  /// One more value, with the moments of these numbers; of none (standard false) the mean 0 and the deviation 1.
  /// `what`: what they are, for the ArgumentError where their squares are beyond what a double holds.
  void add(std::span<const double> numbers, bool standard = true, const std::string& what = "numbers");

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & mean_ & deviation_);
    if constexpr (Archive::is_loading::value)
      if (!normalization().sound()) archive.refuse("a Standardizer has as many deviations as means, all positive");
  }

 private:
  void check(std::size_t values) const {
    if (values != mean_.size())
      throw ShapeError(text("a Standardizer of {} values was given a sample of {}", mean_.size(), values));
  }

  /// The deviation of n values; 1 where it is no more than what rounding makes of a constant. Throws where it is not finite.
  static double deviation_of(double variance, double mean, double n, const std::string& what);

  std::vector<double> mean_, deviation_;
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "standardizer.ipp"
#endif
