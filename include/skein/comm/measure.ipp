// SPDX-License-Identifier: Apache-2.0
// The bodies of measure.hpp.
#pragma once
#include <charconv>
#include <fstream>

#include "../core/text.hpp"
#include "measure.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void MeasureOptions::check() const {
  if (repeats < 1) throw ArgumentError(text("MeasureOptions: .repeats is at least 1; it is {}", repeats));
  for (const long n : bytes)
    if (n < 0) throw ArgumentError(text("MeasureOptions: .bytes are sizes of messages, 0 or more; one is {}", n));
}

SKEIN_INLINE std::array<double, 8> MeasuredNetwork::values() const {
  return {network.near.alpha, network.near.beta, network.far.alpha, network.far.beta, static_cast<double>(network.node),
          network.gamma,      own.alpha,         own.beta};
}

SKEIN_INLINE MeasuredNetwork MeasuredNetwork::of(const std::array<double, 8>& v) {
  return {{{v[0], v[1]}, {v[2], v[3]}, static_cast<int>(v[4]), v[5]}, {v[6], v[7]}};
}

SKEIN_INLINE bool NetworkCache::find(const std::string& key, MeasuredNetwork& found) const {
  std::ifstream file(path_);
  bool any = false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.rfind(" = ");
    if (at == std::string::npos || line.substr(0, at) != key) continue;
    std::array<double, 8> v{};
    const char *place = line.data() + at + 3, *const end = line.data() + line.size();
    bool good = true;
    for (double& x : v) {
      while (place != end && *place == ' ') ++place;
      const auto [after, error] = std::from_chars(place, end, x);
      good = good && error == std::errc{} && x >= 0 && x < 1e9;
      place = after;
    }
    if (good) found = MeasuredNetwork::of(v), any = true;
  }
  return any;
}

SKEIN_INLINE void NetworkCache::add(const std::string& key, const MeasuredNetwork& network) const {
  std::string line = key + " =";
  for (const double x : network.values()) line += text(" {}", x);
  std::ofstream(path_, std::ios::app) << line << '\n';
}

}  // namespace skein::inline SKEIN_ABI::comm
