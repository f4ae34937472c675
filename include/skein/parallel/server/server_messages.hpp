// SPDX-License-Identifier: Apache-2.0
// What workers and servers of a ParameterServer say to each other, and which part of the parameters is whose.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../../comm/tags.hpp"
#include "../../device/span.hpp"
#include "../../plan/placement.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <class T> DeviceSpan<T> piece(DeviceSpan<T> all, const plan::Range& r) {
  return all.sub(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.end));
}
struct ServerMessage {
  /// Away: no gradients come until all have ended the epoch, and evaluated.
  enum Kind : std::int32_t { Push, Pull, State, Done, Away };
  static constexpr int tag = comm::tags::server, values_tag = tag + 1, reply_tag = tag + 2, reply_values_tag = tag + 3,
                       state_tag = tag + 4;

  std::int32_t kind = Push, worker = 0;
  std::int64_t step = 0, version = 0;  // of the worker (Done: the signal that ended its fit); updates that its weights had seen
  double expected_weight = 1, weight = 0;  // gradients are sums over samples of that weight in all, divided by expected_weight
};
struct ServerReply {
  std::int64_t version = 0, signal = 0;  // that the server has got
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
