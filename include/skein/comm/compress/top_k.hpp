// SPDX-License-Identifier: Apache-2.0
// The largest values only, with their places: Aji and Heafield, EMNLP 2017. Not linear: ranks send different places. Wants error
// feedback.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// One of Of values (rounded up) travels, as place and value: 8 ceil(n / Of) bytes. Of equal magnitudes those in front; a NaN is
/// largest. Up to 2^32 - 1 values.
template <int Of> struct TopK {
  static_assert(Of >= 1, "TopK<Of>: one of Of values travels");
  static constexpr std::string_view name = "top-k";
  static constexpr bool linear = false;
  static constexpr int rounds = 1;
  struct Element {
    std::uint32_t place;
    float value;
  };

  constexpr std::size_t elements(std::size_t n, int = 0) const { return (n + Of - 1) / Of; }
  void encode(std::span<const float> values, std::span<Element> wire, int = 0) {
    if (values.size() > 0xffffffffu)
      throw ArgumentError(text("TopK: at most 2^32 - 1 values at a time; there are {}", values.size()));
    order_.resize(values.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    const auto size = [&](std::uint32_t i) { return values[i] == values[i] ? std::abs(values[i]) : INFINITY; };
    const auto k = order_.begin() + static_cast<std::ptrdiff_t>(elements(values.size()));
    if (k != order_.end())
      std::nth_element(order_.begin(), k, order_.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
    std::sort(order_.begin(), k);
    for (std::size_t i = 0; i < elements(values.size()); ++i) wire[i] = {order_[i], values[order_[i]]};
  }
  /// Throws CommError for a place that does not exist.
  void decode(std::span<const Element> wire, std::span<float> values) const {
    std::fill(values.begin(), values.end(), 0.0f);
    for (const Element& e : wire) {
      if (e.place >= values.size())
        throw CommError(text("TopK: place {} of {} values has come: the wire is damaged", e.place, values.size()));
      values[e.place] = e.value;
    }
  }

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace skein::inline SKEIN_ABI::comm
