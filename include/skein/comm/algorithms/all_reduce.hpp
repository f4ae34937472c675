// SPDX-License-Identifier: Apache-2.0
// All-reduces whose algorithm the caller names, or has chosen by size from a measured network, over messages of any communicator
// of the host. For a cluster whose MPI does not know its levels, and for experiments: within one node comm.all_reduce is faster,
// since it works in shared memory.
#pragma once
#include "../../plan/alpha_beta.hpp"
#include "../span_of.hpp"
#include "table_run.hpp"

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
template <class Comm, class R, class Op, class Table> Traffic all_reduce_by(Comm& comm, R&& data, Op op, Table table) {
  const auto s = span_of<typename Comm::device>(data);
  using T = std::remove_pointer_t<decltype(s.data)>;
  table.ranks = comm.size();
  table.count = static_cast<long>(s.size);
  std::vector<T> staging;
  return run_table(comm, std::span<T>(s.data, s.size), table, op, staging);
}
}  // namespace detail

/// Every rank's span becomes the reduction over all ranks, by plan::RingAllReduce. Blocking; allocates a message; 2 (N - 1)
/// messages and 2 (N - 1) / N B bytes leave each rank; deterministic. These functions return what has left this rank; their
/// messages have table_tag.
template <class Comm, SpanLike R, class Op = Sum> Traffic ring_all_reduce(Comm& comm, R&& data, Op op = {}) {
  return detail::all_reduce_by(comm, data, op, plan::RingAllReduce{});
}

/// An all-reduce by plan::RecursiveDoubling: log2 N messages and log2 N B bytes, with at most one message more where N is no
/// power of two.
template <class Comm, SpanLike R, class Op = Sum> Traffic recursive_doubling_all_reduce(Comm& comm, R&& data, Op op = {}) {
  return detail::all_reduce_by(comm, data, op, plan::RecursiveDoubling{});
}

/// An all-reduce by plan::TorusAllReduce: 2 (columns - 1) + 2 (rows - 1) messages and 2 (N - 1) / N B bytes. Throws
/// ArgumentError where `columns` does not divide the ranks.
template <class Comm, SpanLike R, class Op = Sum> Traffic torus_all_reduce(Comm& comm, R&& data, int columns, Op op = {}) {
  if (columns < 1 || comm.size() % columns != 0)
    throw ArgumentError(
        text("torus_all_reduce: the columns must divide the ranks; there are {} columns and {} ranks", columns, comm.size()));
  return detail::all_reduce_by(comm, data, op, plan::TorusAllReduce{.columns = columns});
}

/// An all-reduce by plan::HierarchicalAllReduce: nodes of `node` ranks in order, the last may have fewer. Throws ArgumentError
/// for a node without ranks.
template <class Comm, SpanLike R, class Op = Sum> Traffic hierarchical_all_reduce(Comm& comm, R&& data, int node, Op op = {}) {
  if (node < 1) throw ArgumentError(text("hierarchical_all_reduce: a node has a rank at least; it has {}", node));
  return detail::all_reduce_by(comm, data, op, plan::HierarchicalAllReduce{.node = node});
}

/// The cheapest of them for this size on this network, by plan::cheapest_all_reduce. All ranks give the same network.
template <class Comm, SpanLike R, class Op = Sum>
Traffic all_reduce_on(Comm& comm, R&& data, const plan::Network& network, Op op = {}) {
  const auto s = span_of<typename Comm::device>(data);
  const auto choice = plan::cheapest_all_reduce(network, comm.size(), static_cast<double>(s.size * sizeof(*s.data)));
  return plan::with_table(choice, comm.size(), static_cast<long>(s.size),
                          [&](const auto& table) { return detail::all_reduce_by(comm, data, op, table); });
}

}  // namespace skein::inline SKEIN_ABI::comm
