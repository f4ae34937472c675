// SPDX-License-Identifier: Apache-2.0
// The bodies of records.hpp.
#pragma once
#include "records.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE double Scores::operator[](std::string_view name) const {
  std::string names;
  for (const Metric& m : metrics_) {
    if (m.name() == name) return m.value;
    if (!m.name().empty()) names.append(names.empty() ? "" : ", ").append(m.name());
  }
  throw ArgumentError("no metric '" + std::string(name) + "' was recorded; there are: " + (names.empty() ? "none" : names));
}

SKEIN_INLINE void Scores::set(std::string_view name, double value) {
  name = name.substr(0, longest_name);
  if (name.empty()) throw ArgumentError("a metric needs a name");
  for (Metric& m : metrics_) {
    if (!m.name().empty() && m.name() != name) continue;
    m.text = {};
    name.copy(m.text.data(), name.size());
    m.value = value;
    return;
  }
  throw ArgumentError("a record holds six metrics beside loss and accuracy; '" + std::string(name) + "' is the seventh");
}

SKEIN_INLINE int Scores::metrics() const {
  int n = 0;
  while (n < most_metrics && !metrics_[static_cast<std::size_t>(n)].name().empty()) ++n;
  return n;
}

SKEIN_INLINE std::string_view Scores::Metric::name() const {
  std::size_t n = 0;
  while (n < longest_name && text[n]) ++n;
  return {text.data(), n};
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
