// SPDX-License-Identifier: Apache-2.0
// The bodies of from_tensors.hpp.
#pragma once
#include "from_tensors.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE void check_items(std::int64_t items, std::size_t values, long each) {
  const std::int64_t samples = each > 0 ? static_cast<std::int64_t>(values) / each : 0;
  if (items < 0 || items == samples) return;
  throw ShapeError(skein::text("from_tensors: y has {} rows, and x {} samples: give a row of y for each sample", items, samples));
}

SKEIN_INLINE int labels_each(std::size_t labels, std::size_t values, long each) {
  const std::size_t count = each > 1 ? values / static_cast<std::size_t>(each) : 0;  // numbers alone: one label a sample
  return count > 0 && labels > count && labels % count == 0 ? static_cast<int>(labels / count) : 1;
}

SKEIN_INLINE int target_length(std::size_t values, std::size_t samples, long each) {
  const std::size_t count = each > 0 ? samples / static_cast<std::size_t>(each) : 0;
  if (count == 0 && values == 0) return 1;  // whoever asks for a sample says that there is none
  if (count > 0 && values > 0 && values % count == 0) return static_cast<int>(values / count);
  std::string text = skein::text("from_tensors: {} target values cannot belong to {} samples", values, count);
  if (each == 1 && values > 0 && values < count && count % values == 0)
    text += skein::text(": if a sample has {} values, say so: from_tensors(x, sk::Extents{1, {{}}}, y)", count / values,
                        count / values);
  throw ShapeError(text);
}

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
