// SPDX-License-Identifier: Apache-2.0
// What ranks have kept of their samples, put together: for metrics that are no function of sums.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// `samples` has as many doubles of each of `rows`; afterwards of each of all rows, in their order, on every rank. reduce(span)
/// adds up over the ranks, which all call this. Takes the memory of all rows, and two all-reduces.
template <class Reduce>
void gather_samples(std::vector<double>& samples, std::span<const std::int64_t> rows, std::int64_t all, Reduce&& reduce) {
  double counts[2] = {static_cast<double>(samples.size()), static_cast<double>(rows.size())};
  reduce(std::span<double>(counts));
  const std::size_t each = counts[1] > 0 ? static_cast<std::size_t>(counts[0] / counts[1]) : 0;
  std::vector<double> whole(each * static_cast<std::size_t>(all));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(samples.data() + i * each, each, whole.data() + static_cast<std::size_t>(rows[i]) * each);
  reduce(std::span<double>(whole));
  samples = std::move(whole);
}

}  // namespace skein::inline SKEIN_ABI::train
