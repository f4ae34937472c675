// SPDX-License-Identifier: Apache-2.0
// The bodies of records.hpp.
#pragma once
#include "records.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE const double* Scores::find(std::string_view name) const {
  for (const Metric& m : metrics_)
    if (m.name == name) return &m.value;
  return nullptr;
}

SKEIN_INLINE double Scores::operator[](std::string_view name) const {
  if (const double* value = find(name)) return *value;
  TextList names;
  const auto own = [&](std::string_view of, double value) {  // a member, where it was measured and no metric has its name
    if (std::isnan(value) || find(of)) return false;
    names.add(of);
    return name == of;
  };
  if (own("loss", loss)) return loss;
  if (own("accuracy", accuracy)) return accuracy;
  for (const Metric& m : metrics_) names.add(m.name);
  throw ArgumentError(
      "no metric '" + std::string(name) + "' was recorded; " +
      (names.empty() ? "there are none: .metrics of fit or evaluate names those that are" : "there are: " + names.text()));
}

SKEIN_INLINE void Scores::set(std::string_view name, double value) {
  if (name.empty()) throw ArgumentError("a metric needs a name");
  for (Metric& m : metrics_)
    if (m.name == name) {
      m.value = value;
      return;
    }
  metrics_.push_back({std::string(name), value});
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
