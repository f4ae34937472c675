// SPDX-License-Identifier: Apache-2.0
// The bodies of class_scores.hpp.
#pragma once
#include <cmath>

#include "../../core/text.hpp"
#include "class_scores.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE ClassCounts::ClassCounts(std::string_view name, int of, double threshold)
    : name_(std::string(name) + (of < 0 ? "" : text(" of {}", of))), class_(of), threshold_(threshold) {}

SKEIN_INLINE void ClassCounts::check_outputs(int classes) const {
  if (class_ >= classes) throw ArgumentError(text("{}: there are {} classes, numbered from 0", name_, classes));
}

SKEIN_INLINE void ClassCounts::refuse_target(double target) const {
  throw ArgumentError(
      text("{}: a target is {}, and it counts targets that are 0 or 1, as yes and no: of other numbers "
           "train::MeanAbsoluteError and train::R2 say how near the outputs are",
           name_, static_cast<float>(target)));
}

SKEIN_INLINE double ClassCounts::score(double a, double b) const {
  const int classes = static_cast<int>(counts_.size() / 3);
  if (classes > 0) check_outputs(classes);
  double sum = 0;
  int there = 0;
  for (int c = 0; c < classes; ++c) {
    const double* counts = counts_.data() + 3 * c;
    if (class_ >= 0 ? c != class_ : counts[said] + counts[actual] == 0) continue;
    const double divisor = a * counts[said] + b * counts[actual];
    sum += divisor > 0 ? counts[right] / divisor : 0;
    ++there;
  }
  double samples = 0;
  for (const double count : counts_) samples += count;
  return samples > 0 && there > 0 ? sum / there : std::nan("");
}

}  // namespace skein::inline SKEIN_ABI::train
