// SPDX-License-Identifier: Apache-2.0
// The bodies of origin.hpp.
#pragma once
#include "../core/hash.hpp"
#include "../core/text.hpp"
#include "origin.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE void check_encoders(const Origin& one, const Origin& other, const char* message) {
  if (!one.encoders.empty() && !other.encoders.empty() && one.encoders != other.encoders) throw ArgumentError(message);
}

SKEIN_INLINE std::uint64_t detail::hash_of_split(std::span<const std::int64_t> chosen, std::uint64_t before) {
  Fnv1a hash;
  hash.add(before);
  for (const std::int64_t i : chosen) hash.add(static_cast<std::uint64_t>(i));
  return hash.value() | 1;
}

SKEIN_INLINE std::int64_t detail::first_of_split(std::int64_t size, double fraction) {
  if (!(fraction >= 0 && fraction <= 1))
    throw ArgumentError(
        text("split: the fraction is {}: give the share of the first part, from 0 to 1, as in split(set, 0.8)", fraction));
  return static_cast<std::int64_t>(static_cast<double>(size) * fraction + 0.5);
}

SKEIN_INLINE void detail::join_origin(Origin& all, const Origin& next) {
  all.encoders.insert(all.encoders.end(), next.encoders.begin(), next.encoders.end());
  if (all.split != 0 && next.split != 0 && all.split != next.split)
    throw ArgumentError(
        "data::join: the sets were split in different ways (another seed, another side, or sorted after the split), so that "
        "sample i of one does not belong to sample i of the other: join the whole sets and split what comes, "
        "split(join(a, b), 0.8); or give both splits the same seed");
  if (all.split == 0) all.split = next.split;
  all.normalized_as_read = all.normalized_as_read || next.normalized_as_read;
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
