// SPDX-License-Identifier: Apache-2.0
// What is under way between the ranks of a simulation: the collectives of a group, letters, and receives that are started.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "../work.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::comm {

inline constexpr double sim_never = std::numeric_limits<double>::infinity();

/// A collective of a group: complete once all its ranks have come.
struct SimCall {
  std::vector<CollectiveCall> posts;
  std::vector<double> entered, left;
  int arrived = 0, taken = 0;
  bool done = false;
};

/// Ranks that are one communicator: members are ranks of the whole world.
struct SimGroup {
  std::uint64_t id = 0;
  std::vector<int> members{};
  std::deque<SimCall> calls{};
  std::uint64_t first = 0;  // the number of calls.front()

  /// The call of this number, which is under way.
  SimCall& call(std::uint64_t number) { return calls[static_cast<std::size_t>(number - first)]; }
  /// The call of this number, which the first rank to come makes.
  SimCall& begun(std::uint64_t number);
  /// A rank is through with it. Calls that all are through with are forgotten.
  void taken(std::uint64_t number);
  /// The algorithm of an all-reduce in this group of a world of so many ranks: that of the options, else the cheapest on the
  /// group's own network.
  plan::AllReduceChoice all_reduce_choice(const SimOptions& options, int world, double bytes) const;
};

/// A message under way or not yet wanted.
struct SimLetter {
  std::uint64_t group = 0;
  int from = 0, tag = 0;  // a rank of the world
  double departed = 0, takes = 0;
  std::vector<char> data{};
};

/// A receive that is started.
struct SimReceive {
  std::uint64_t group = 0;
  int from = -1, tag = 0;
  void* to = nullptr;
  std::size_t bytes = 0, came = 0;
  bool matched = false;
  double due = 0;
  int peer = -1;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "group.ipp"
#endif
