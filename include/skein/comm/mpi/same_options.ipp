// SPDX-License-Identifier: Apache-2.0
// The bodies of same_options.hpp.
#pragma once
#include <cstdint>
#include <iterator>

#include "../collective_call.hpp"
#include "same_options.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
/// ".eager_bytes of CommOptions is 60000 on ranks 0, 2, 3000 on rank 1".
SKEIN_MPI_INLINE std::string differing_option(const char* name, const std::vector<std::uint64_t>& values,
                                              const RankNames& ranks) {
  const bool order = std::string_view(name) == "order";
  const auto of = [&](int r) { return values[static_cast<std::size_t>(r)]; };
  std::string text = std::string(".") + name + " of CommOptions differs between ranks: it";
  const char* before = " is ";
  for (int r = 0, n = static_cast<int>(values.size()); r < n; ++r) {
    bool said = false;
    for (int q = 0; q < r; ++q) said = said || of(q) == of(r);
    if (said) continue;
    constexpr const char* orders[] = {"automatic", "ranks", "native"};
    text.append(std::exchange(before, ", ")).append(order && of(r) < 3 ? orders[of(r)] : std::to_string(of(r))).append(" on ");
    text += ranks_text(ranks, [&](int q) { return of(q) == of(r); });
  }
  return text + ". Give all ranks the same options, and the same environment";
}
}  // namespace detail

SKEIN_MPI_INLINE CommOptions same_options(MPI_Comm comm, const RankNames& ranks, CommOptions o) {
  constexpr const char* names[] = {"order",         "node_size",   "message",    "doubling_bytes",
                                   "halving_bytes", "eager_bytes", "level_bytes"};
  constexpr int n = static_cast<int>(std::size(names));
  const std::uint64_t own[n] = {static_cast<std::uint64_t>(o.order),
                                static_cast<std::uint64_t>(o.node_size),
                                o.message,
                                o.doubling_bytes,
                                o.halving_bytes,
                                o.eager_bytes,
                                o.level_bytes};
  std::uint64_t said[2 * n + 1], most[2 * n + 1] = {};  // the greatest of ~x is that of the least x
  for (int i = 0; i < n; ++i) said[i] = own[i], said[n + i] = ~own[i];
  said[2 * n] = o.check;
  check_mpi(MPI_Allreduce(said, most, 2 * n + 1, MPI_UINT64_T, MPI_MAX, comm), "MPI_Allreduce");
  o.check = most[2 * n] != 0;
  for (int i = 0; i < n; ++i) {
    if (most[i] == ~most[n + i]) continue;
    std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks.size()));
    check_mpi(MPI_Allgather(&own[i], 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, comm), "MPI_Allgather");
    throw CommError(detail::differing_option(names[i], all, ranks));
  }
  return o;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
