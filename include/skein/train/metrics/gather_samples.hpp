// SPDX-License-Identifier: Apache-2.0
// What ranks have kept of their samples, put together: for metrics that are no function of sums.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// `samples` has as many doubles of each of `rows`; afterwards of each of all rows, in their order, on every rank. reduce(span)
/// adds up over the ranks, which all call this. Takes the memory of all rows, and two all-reduces. Throws ArgumentError, on all
/// ranks, where the metric of that name has not kept as many of each row.
template <class Reduce> void gather_samples(std::vector<double>& samples, std::span<const std::int64_t> rows, std::int64_t all,
                                            Reduce&& reduce, std::string_view name) {
  const std::size_t own = rows.empty() ? 0 : samples.size() / rows.size();
  const auto size = static_cast<double>(samples.size());
  double counts[4] = {size, static_cast<double>(rows.size()), own * rows.size() == samples.size() ? 0.0 : 1.0,
                      size * static_cast<double>(own)};
  reduce(std::span<double>(counts));
  const std::size_t each = counts[1] > 0 ? static_cast<std::size_t>(counts[0] / counts[1]) : 0;
  const auto wanted = static_cast<double>(each);  // equal on all ranks where the sum of squares is that of equal ones
  if (counts[2] > 0 || wanted * counts[1] != counts[0] || wanted * counts[0] != counts[3])
    throw ArgumentError(
        text("the metric '{}' has kept {} numbers of {} rows on this rank: samples() has as many numbers of each row that add() "
             "was given, also of a row that does not count (NaN, for example)",
             name, samples.size(), rows.size()));
  std::vector<double> whole(each * static_cast<std::size_t>(all));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(samples.data() + i * each, each, whole.data() + static_cast<std::size_t>(rows[i]) * each);
  reduce(std::span<double>(whole.data(), whole.size()));
  samples = std::move(whole);
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
