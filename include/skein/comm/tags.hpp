// SPDX-License-Identifier: Apache-2.0
// The tags of all messages that the library sends, in one place: policies share the communicator that they are given with the
// user's own messages, and with each other.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm::tags {

inline constexpr int last = 32000;  ///< of send, recv, isend and irecv

// Within these: what policies and exchanges send. Messages of the user's with such tags are taken for theirs while a fit runs.
inline constexpr int micro_batches = 0;         ///< from here on: a pipeline's, two directions a stage and micro-batch
inline constexpr int all_reduce_table = 28998;  ///< an all-reduce by a table
inline constexpr int buckets = 29000;           ///< from here on: two rounds of each bucket of an exchange in parts
inline constexpr int most_buckets = 1000;
inline constexpr int tied_parameters = buckets + 2 * most_buckets;  ///< from here on: a pipeline's, one a pair
inline constexpr int server = 31900;                                ///< five: gradients, values, replies, their values, state
inline constexpr int gossip = 31910;
inline constexpr int pipeline_files = 31999;

// Above: of a communicator itself, over MPI.
inline constexpr int in_order_of_ranks = 32100, native_order = 32101, signatures = 32102;
inline constexpr int failures = 32200, free_together = 32201;

}  // namespace skein::inline SKEIN_ABI::comm::tags
