// SPDX-License-Identifier: Apache-2.0
// Origin: where the samples of a data set come from, as far as the set says it: by which TableEncoders they were encoded, and by
// which split they were chosen. Whatever wraps a set hands it on, so that sets that do not belong together are refused where they
// meet: training and validation, a set and the encoder that is kept with the model, two sets that are joined.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Empty as it comes: nothing is known.
struct Origin {
  std::vector<std::uint64_t> encoders{};  ///< TableEncoder::fingerprint() of each encoder, in the order of joined sets
  std::uint64_t split = 0;                ///< of the chosen samples and their order, where split() chose them; else 0
  bool normalized_as_read = false;        ///< by the function that reads them, such as mnist(), in whatever program
};

/// T says where its samples come from: origin().
template <class T> concept HasOrigin = requires(const T& d) {
  { d.origin() } -> std::convertible_to<Origin>;
};

/// Throws ArgumentError, `message`, where both are of TableEncoders, and these are not the same.
void check_encoders(const Origin& one, const Origin& other, const char* message);

namespace detail {
template <class T> Origin origin_of(const T& d) {
  if constexpr (HasOrigin<T>) return d.origin();
  else return {};
}
/// For Origin::split: of samples chosen from a set that was split already, or not (0).
std::uint64_t hash_of_split(std::span<const std::int64_t> chosen, std::uint64_t before);
/// How many of so many samples are the first part of a split. Throws ArgumentError where the fraction is none.
std::int64_t first_of_split(std::int64_t size, double fraction);
/// Adds the origin of one more of the sets that data::join puts side by side. Throws ArgumentError where they are of other
/// splits.
void join_origin(Origin& all, const Origin& next);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "origin.ipp"
#endif
