// SPDX-License-Identifier: Apache-2.0
// What an own exchange must do on any communicator of the host.
#pragma once
#include "own_exchange.hpp"
#include "sharded_cases.hpp"

namespace own_exchange_cases {

/// The weights of DataParallel with buckets of every size, with a step that is broken off by nothing, and on other threads.
template <class Comm> void agrees_with_all_reduce(Comm& world) {
  using sk::parallel::DataParallel, sk::parallel::ExchangeBy, sk::parallel::Sharded;
  const auto whole = sharded_cases::train(sk::parallel::DataParallel{world});
  for (long bucket : {1L, 1L << 20})
    shard_cases::require_close(sharded_cases::train(DataParallel{world, {.bucket_bytes = bucket}, ExchangeBy<InTwoHalves>{}}),
                               whole, 1e-5);
  shard_cases::require_close(sharded_cases::train(DataParallel{world, {.poll = false}, Sharded<1>{}, ExchangeBy<InTwoHalves>{}}),
                             whole, 1e-5);
}

}  // namespace own_exchange_cases
