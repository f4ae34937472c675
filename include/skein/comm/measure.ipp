// SPDX-License-Identifier: Apache-2.0
// The bodies of measure.hpp.
#pragma once
#include "measure.hpp"

namespace skein::inline SKEIN_ABI::comm {

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
    std::istringstream numbers(line.substr(at + 3));
    bool good = true;
    for (double& x : v) good = good && (numbers >> x) && x >= 0 && x < 1e9;
    if (good) found = MeasuredNetwork::of(v), any = true;
  }
  return any;
}

SKEIN_INLINE void NetworkCache::add(const std::string& key, const MeasuredNetwork& network) const {
  std::ofstream file(path_, std::ios::app);
  file << key << " =";
  char text[32];
  for (const double x : network.values()) {
    std::snprintf(text, sizeof text, " %.17g", x);
    file << text;
  }
  file << '\n';
}

}  // namespace skein::inline SKEIN_ABI::comm
