// SPDX-License-Identifier: Apache-2.0
// A metric out of a function of one sample: the mean of what it returns; or, where it returns several numbers, a function of
// their sums.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "accuracy.hpp"
#include "../metric.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// How many numbers an own metric's function returns: 1 for a number, N for a std::array<double, N>, 0 for anything else.
template <class T> inline constexpr std::size_t numbers_of = std::is_convertible_v<T, double> ? 1 : 0;
template <std::size_t N> inline constexpr std::size_t numbers_of<std::array<double, N>> = N;

template <class Function, class... Arguments> consteval std::size_t numbers_returned() {
  if constexpr (std::is_invocable_v<Function&, Arguments...>)
    return numbers_of<std::remove_cvref_t<std::invoke_result_t<Function&, Arguments...>>>;
  else return 0;
}
template <class Function, class Scalar>
inline constexpr std::size_t numbers_of_label = numbers_returned<Function, std::span<const Scalar>, int>();
template <class Function, class Scalar>
inline constexpr std::size_t numbers_of_target = numbers_returned<Function, std::span<const Scalar>, std::span<const Scalar>>();

/// What an own metric makes of its sums if nothing is said: one sum over the samples.
struct MeanOfSamples {};
}  // namespace detail

/// OwnMetric{"close", [](std::span<const float> output, std::span<const float> target) { return double(...); }}, or with
/// (output, int label): the mean over the samples. With a function that returns a std::array<double, N>, a second one makes the
/// value of the N sums: OwnMetric{"precision", counts, [](std::array<double, 2> sums) { return sums[0] / sums[1]; }}. A function
/// for float serves double too where its parameters are `auto`. Samples with negative labels are left out.
template <class Function, class Finish = detail::MeanOfSamples> class OwnMetric {
  static constexpr std::size_t label_numbers = detail::numbers_of_label<Function, float>,
                               target_numbers = detail::numbers_of_target<Function, float>;
  static constexpr std::size_t numbers = label_numbers > 0 ? label_numbers : target_numbers;
  static constexpr bool mean = std::same_as<Finish, detail::MeanOfSamples>;
  using Sums = std::array<double, numbers>;
  static_assert(numbers > 0,
                "the function of an OwnMetric takes (std::span<const float> output, int label) or (std::span<const float> "
                "output, std::span<const float> target) and returns a number or a std::array<double, N>");
  static_assert(
      numbers == 0 || mean ? numbers <= 1 : std::is_invocable_r_v<double, const Finish&, Sums>,
      "an OwnMetric whose function returns a std::array<double, N> needs a second one, which makes the value of their sums: "
      "double operator()(std::array<double, N>) const");

 public:
  OwnMetric(std::string name, Function function, Finish finish = {})
      : name_(std::move(name)), function_(std::move(function)), finish_(std::move(finish)) {}
  std::string_view name() const { return name_; }

  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) requires(detail::numbers_of_label<Function, Scalar> > 0) {
    detail::check_labels(outputs.count, labels.size(), name_.c_str());
    for (long i = 0; i < outputs.count; ++i)
      if (const int label = labels[static_cast<std::size_t>(i)]; label >= 0) count(function_(outputs[i], label));
  }
  template <class Scalar>
  void add(Rows<Scalar> outputs, Rows<Scalar> targets) requires(detail::numbers_of_target<Function, Scalar> > 0) {
    if (outputs.count != targets.count) detail::check_targets(outputs, targets, name_.c_str());
    for (long i = 0; i < outputs.count; ++i) count(function_(outputs[i], targets[i]));
  }
  std::span<double> sums() { return sums_; }
  /// NaN before the first sample.
  double value() const {
    if (!(sums_[numbers] > 0)) return std::nan("");
    if constexpr (mean) {
      return sums_[0] / sums_[1];
    } else {
      Sums sums;
      for (std::size_t k = 0; k < numbers; ++k) sums[k] = sums_[k];
      return finish_(sums);
    }
  }

 private:
  template <class Numbers> void count(const Numbers& sample) {
    if constexpr (std::is_convertible_v<Numbers, double>) sums_[0] += static_cast<double>(sample);
    else
      for (std::size_t k = 0; k < sample.size(); ++k) sums_[k] += sample[k];
    sums_[numbers] += 1;
  }

  std::string name_;
  Function function_;
  [[no_unique_address]] Finish finish_;
  std::array<double, numbers + 1> sums_{};  // of the function's numbers, and the samples
};

}  // namespace skein::inline SKEIN_ABI::train
