// SPDX-License-Identifier: Apache-2.0
// post_local_sgd: synchronous at first, when weights change fast, and then by averages of models. Lin et al., "Don't Use Large
// Mini-Batches, Use Local SGD", ICLR 2020.
#pragma once
#include "../compose.hpp"
#include "../data/data_parallel.hpp"
#include "model_average.hpp"
#include "../data/sync_every.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Post-local SGD: ranks exchange gradients in the first steps; after that each rank trains alone, and models are
/// averaged every Period steps: post_local_sgd<500, 8>(world).
template <int FirstSteps, int Period, class Comm>
auto post_local_sgd(Comm& comm, ModelAverageOptions average = {}, DataParallelOptions gradients = {}) {
  average.first = FirstSteps;
  return Compose{data_parallel<SyncFirst<FirstSteps>>(comm, gradients), model_average<Period>(comm, average)};
}

}  // namespace skein::inline SKEIN_ABI::parallel
