// SPDX-License-Identifier: Apache-2.0
// Any data set, served as (value - mean) / deviation: of one that normalises by itself (InMemory) by itself, of others as map()
// does.
#pragma once
#include <concepts>
#include <utility>

#include "../core/error.hpp"
#include "map.hpp"
#include "normalization.hpp"
#include "serve_from.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Throws ArgumentError for a mean or a deviation that nothing can be normalised with.
void check_normalization(double mean, double deviation);

namespace detail {
template <class Data> concept Normalizes = requires(const Data& d, double x) {
  { d.normalize(x, x) } -> Dataset;
};
}  // namespace detail

/// `set`, which is copied (or moved) into the result, served as (value - mean) / deviation. Where the set has a normalize() of
/// its own that is what it gives: of bytes, value is byte / 255 then, and it replaces an earlier one.
template <class Data> auto normalize(Data set, double mean, double deviation) {
  assert_dataset<Data>();
  check_normalization(mean, deviation);
  if constexpr (detail::Normalizes<Data>) return set.normalize(mean, deviation);
  else return map(std::move(set), Normalization{{mean}, {deviation}});
}

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "normalize.ipp"
#endif
