// SPDX-License-Identifier: Apache-2.0
// The bodies of saved_array.hpp.
#pragma once
#include <algorithm>
#include <cstddef>

#include "../core/shape.hpp"
#include "saved_array.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// The first logical value of an entry that stands at or behind so many scalars.
inline std::int64_t value_at(const plan::Entry& e, long scalars) {
  const long last = e.extents.last(), pitch = row_pitch(last);
  return static_cast<std::int64_t>(scalars / pitch) * last + std::min(scalars % pitch, last);
}
SKEIN_INLINE std::string section_of(const SavedArray& array, const plan::Entry& e) {
  return array.prefix + std::string(std::string_view(plan::name_of(array.paths, e)));
}
SKEIN_INLINE void add_array(CheckpointWriter& writer, const SavedArray& array, plan::Range range, const void* values) {
  for (const plan::Entry& e : array.entries) {
    const long from = std::clamp(e.offset, range.begin, range.end), to = std::clamp(e.offset + e.stored, range.begin, range.end);
    if (from >= to) continue;
    const std::int64_t count = e.extents.count(), begin = std::min(value_at(e, from - e.offset), count),
                       end = std::min(value_at(e, to - e.offset), count);
    const long last = e.extents.last(), pitch = row_pitch(last);
    const long first = e.offset + begin / last * pitch + begin % last - range.begin;
    if (begin < end)
      writer.add_values(section_of(array, e), array.type, e.extents, begin, end,
                        static_cast<const std::byte*>(values) + first * value_bytes(array.type), pitch);
  }
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
