// SPDX-License-Identifier: Apache-2.0
// Normalization: how a data set's values are normalised. A set says it, and it goes into the file with the model, so that a
// program that uses the model gives raw samples:
//
//     trainer.keep(train.normalization());
//
// and where the model is used: predictor.load("classifier.skein");  predictor.predict(raw).
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/shape.hpp"

namespace skein::inline SKEIN_ABI::data {

/// (value - mean) / deviation. One mean is that of all values, as many as channels are those of the channels (which come last),
/// as many as a sample has values are those of the values. Empty: nothing is done.
struct Normalization {
  /// Where Trainer::keep puts it in a file.
  static constexpr std::string_view kept_as = "normalization";

  std::vector<double> mean{}, deviation{};
  double divisor = 1;  ///< by which the set divides what it stores before: 255 where it stores bytes
  bool whole = true;   ///< false: the samples were changed by another function too, as data::map of a function does

  /// Itself, so that data::map of one says it.
  const Normalization& normalization() const { return *this; }
  /// Changes nothing: the samples are raw.
  bool identity() const;
  /// Raw samples of numbers, of which nothing is known: a predictor neither changes nor looks at them. Those of bytes it looks
  /// at.
  bool unknown() const { return identity() && divisor == 1; }
  /// This one, and then `next` of its results. Throws ArgumentError where one has another number of means, and neither has one.
  Normalization then(const Normalization& next) const;
  /// Normalises one sample, in place; what data::map takes.
  template <class Scalar> void operator()(std::span<Scalar> sample) const {
    const std::size_t n = mean.size();
    if (deviation.size() != n || (n > 0 && sample.size() % n != 0)) refuse(sample.size());
    for (std::size_t i = 0; n > 0 && i < sample.size(); i += n)
      for (std::size_t c = 0; c < n; ++c)
        sample[i + c] = static_cast<Scalar>((static_cast<double>(sample[i + c]) - mean[c]) / deviation[c]);
  }

  template <class Archive> void serialize(Archive& archive, unsigned) {
    if constexpr (!Archive::is_loading::value) check_whole();
    (archive & mean & deviation & divisor);
    if constexpr (Archive::is_loading::value)
      if (!sound()) archive.refuse("a Normalization has as many deviations as means, all positive, and a positive divisor");
  }

  /// Whether it is one: as many deviations as means, all finite, and what is divided by positive.
  bool sound() const;

 private:
  [[noreturn]] void refuse(std::size_t values) const;
  /// Throws ArgumentError where it is not all that is done to a sample: a file of it would be wrong.
  void check_whole() const;
};

/// T says how its values are normalised: normalization().
template <class T> concept HasNormalization = requires(const T& d) {
  { d.normalization() } -> std::convertible_to<Normalization>;
};

/// Throws ArgumentError where a set that is normalised as `set` says is no raw one, to which `kept` can be applied: it is
/// normalised already, its samples have not so many channels or values, or one of both is of bytes and the other of values
/// beyond 1.
void check_raw(const Normalization& kept, const Normalization& set, const Extents& sample);

/// False where samples that are normalised in these two ways are certainly others, by more than a thousandth of a deviation. Of a
/// set that does not say it, or not all of it, or of bytes beside numbers, nothing is known.
bool alike(const Normalization& one, const Normalization& other);
/// Throws ArgumentError where the validation set is not normalised like the training set, as far as that is known.
void check_alike(const Normalization& training, const Normalization& validation);

namespace detail {
/// Throws ShapeError where it has not as many deviations as means, or other than one, as many as channels or as many as values.
void check_counts(const Normalization& n, const Extents& sample);

template <class T> Normalization normalization_of(const T& d) {
  if constexpr (HasNormalization<T>) return d.normalization();
  else return {};
}

/// "(value - 0.5) / 0.25", "(value - mean) / deviation with the means 0.1, 0.2, 0.3, ... and the deviations 1, 1, 1, ...".
std::string formula_of(const Normalization& n);

/// What a predictor does to raw samples: of a model that was trained with bytes / 255, numbers beyond 1 are refused.
struct KeptNormalization {
  Normalization normalization;
  bool divided = false;  // the set divides its bytes by itself

  template <class Scalar> void operator()(std::span<Scalar> sample) const {
    if (normalization.divisor != 1 && !divided)
      for (const Scalar value : sample)
        if (value > Scalar(1)) refuse(static_cast<double>(value));
    normalization(sample);
  }

 private:
  [[noreturn]] void refuse(double value) const;
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "normalization.ipp"
#endif
