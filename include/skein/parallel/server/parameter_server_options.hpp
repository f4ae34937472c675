// SPDX-License-Identifier: Apache-2.0
// What a user sets for a ParameterServer, and what its servers report.
#pragma once
#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The step size of a gradient that is late: the optimizer's, or that divided by the number of updates that were made since its
/// weights were pulled (Zhang et al., "Staleness-aware Async-SGD", IJCAI 2016).
enum class LateRate { constant, divided };

/// Who serves, and what a late gradient counts.
struct ParameterServerOptions {
  int servers = 1;                     ///< the last ranks of the communicator; each has a shard of the parameters
  LateRate rate = LateRate::constant;  ///< no effect with Staleness<0>, where nothing is late
};

/// What a fit's servers did: of the first of them, known to all ranks when the fit has ended.
struct ServerReport {
  double updates = 0;                            ///< of the parameters; with Staleness<0> one a step, else one a gradient
  double mean_staleness = 0, max_staleness = 0;  ///< updates of others between a worker's pull and its push
  double max_ahead = 0;                          ///< steps of the fastest worker before the slowest's, at most
  double busy = 0, seconds = 0;                  ///< seconds that the server worked, of those that the fit took
};

}  // namespace skein::inline SKEIN_ABI::parallel
