// SPDX-License-Identifier: Apache-2.0
// A fragment of the weights, which ModelAverage averages by itself, and what a file has of all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "../../plan/placement.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// `Request`: an all-reduce that is under way.
template <class Request> struct AveragedFragment {
  plan::Range range{};
  std::size_t place = 0, width = 0;      // in what travels: parameters, state arrays, 16 scalars with the weight
  std::int64_t begun = 0, averaged = 0;  // in which step it was sent; in which sent, or the same on all ranks, last
  std::int64_t samples = 0;              // seen before the values that travelled last
  std::int64_t outer_steps = 0;          // that the outer optimizer has made of it
  std::optional<Request> request{};
  bool arrived = false;  // of a request that was waited for before a save
  bool under_way() const { return request || arrived; }
};

/// Where in its periods a rank is: the step, four numbers of each fragment (begun, averaged, samples since, whether a sum is
/// under way), those sums, and each fragment's outer steps.
template <class Scalar> struct AverageMoment {
  bool anchored = false;
  std::int64_t step = 0;
  std::vector<std::int64_t> fragments{};
  std::vector<Scalar> sums{};
  std::vector<std::int64_t> outer_steps{};
  static constexpr unsigned archive_version = 1;  // 0: files without outer_steps
  template <class Archive> void serialize(Archive& archive, unsigned version) {
    (archive & step & fragments & sums);
    if (version >= 1) (archive & outer_steps);
  }
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
