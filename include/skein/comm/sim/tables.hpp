// SPDX-License-Identifier: Apache-2.0
// Which table a collective is played by: what a simulated and a delayed network have in common.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "../../plan/collective_tables.hpp"
#include "../collective_call.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Calls use(table) with the table of a collective on n ranks; `choice` is that of an all-reduce.
template <class Use> void with_table_of(const CollectiveCall& o, int n, const plan::AllReduceChoice& choice, Use&& use) {
  const Signature& s = o.signature;
  const long count = static_cast<long>(s.count), whole = o.counts ? count : count * n;
  switch (s.kind) {
    case Collective::Barrier:
      return use(plan::DisseminationBarrier{n, 0});
    case Collective::Broadcast:
      return use(plan::BinomialBroadcast{n, count, s.root});
    case Collective::Reduce:
      return use(plan::BinomialReduce{n, count, s.root});
    case Collective::ReduceScatter:
      return use(plan::RingReduceScatter{n, whole});
    case Collective::AllGather:
      return use(plan::RingAllGather{n, whole});
    case Collective::AllToAll:
      return use(plan::PairwiseExchange{n, whole});
    case Collective::AllReduce:
      break;
  }
  plan::with_table(choice, n, count, [&](const auto& table) { use(table); });
}

/// Seconds, or a factor of them, that a clock can go on by: finite, 0 or more.
constexpr bool is_time(double s) { return s >= 0 && s <= std::numeric_limits<double>::max(); }
/// Throws ArgumentError, of `who`, where a message, a byte or the sum of one would take a negative time, or no finite one.
void check_links(const char* who, const plan::Network& links);
/// Seconds until the last of n ranks is through, where all come at once; an all-reduce by the cheapest algorithm.
double seconds_of(const CollectiveCall& o, int n, const plan::Network& network);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "tables.ipp"
#endif
