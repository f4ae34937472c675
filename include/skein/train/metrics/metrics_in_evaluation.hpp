// SPDX-License-Identifier: Apache-2.0
// A metric that a program reads itself, given by std::ref, is in one evaluation at a time: ranks that are threads and share one
// object would all add to its sums, so that samples counted more than once.
#pragma once
#include <list>
#include <string>
#include <vector>

#include "../held_alone.hpp"
#include "any_metric.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Says, as long as it lives, that the metrics given by reference are in an evaluation. Throws ArgumentError where one of them is
/// in one already, or twice in the list.
class MetricsInEvaluation {
 public:
  explicit MetricsInEvaluation(const std::vector<AnyMetric>& metrics) {
    for (const AnyMetric& m : metrics)
      if (const void* object = m.referred())
        held_.emplace_back(object, "the metric '" + std::string(m.name()) +
                                       "' is in another evaluation: ranks that are threads have one each, made in the function "
                                       "that spawn() calls, and a list of .metrics has it once");
  }

 private:
  std::list<HeldAlone> held_;
};

}  // namespace skein::inline SKEIN_ABI::train
