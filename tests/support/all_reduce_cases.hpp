// SPDX-License-Identifier: Apache-2.0
// All-reduces by tables on any communicator with messages: results against comm.all_reduce, traffic against the tables. Failures
// throw, since ranks may be threads.
#pragma once
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/plan/collective_check.hpp>

#include <cmath>
#include <string>

#include "collectives.hpp"

namespace all_reduce_cases {
namespace sk = skein;
using collectives::require;

template <class T> std::vector<T> values(int rank, std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(std::sin(static_cast<double>(i) * 0.37 + rank * 1.3) * 3);
  return v;
}

/// `run(data)` must leave what comm.all_reduce leaves but for roundings, the same bits on all ranks and in a second run, and send
/// what the table says.
template <class T, class Comm, class Op, class Table, class Run>
void one(Comm& world, std::size_t n, Op op, const Table& table, const std::string& what, Run&& run) {
  std::vector<T> a = values<T>(world.rank(), n), b = a, c = a;
  world.all_reduce(a, op);
  const sk::comm::Traffic traffic = run(b);
  run(c);
  const double bound = static_cast<double>(std::numeric_limits<T>::epsilon()) * world.size() * 3 * (world.size() + 1);
  for (std::size_t i = 0; i < n; ++i)
    require(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= bound,
            what + ": a value differs from all_reduce's");
  require(collectives::same_bits(b, c), what + ": other bits in a second run");
  std::vector<T> first = b;
  if (n) world.broadcast(first, 0);
  require(collectives::same_bits(b, first), what + ": other bits than rank 0");
  const sk::plan::SentByRank sent = sk::plan::sent_by(table, world.rank());
  require(traffic.messages == sent.messages && traffic.bytes == sent.values * static_cast<long>(sizeof(T)),
          what + ": other traffic than the plan's");
}

template <class T, class Comm, class Op> void all(Comm& world, std::size_t n, Op op) {
  const int ranks = world.size();
  const long count = static_cast<long>(n);
  const std::string of = " of " + std::to_string(n) + " values over " + std::to_string(ranks) + " ranks";
  one<T>(world, n, op, sk::plan::RingAllReduce{ranks, count}, "ring" + of,
         [&](auto& d) { return sk::comm::ring_all_reduce(world, d, op); });
  one<T>(world, n, op, sk::plan::RecursiveDoubling{ranks, count}, "recursive doubling" + of,
         [&](auto& d) { return sk::comm::recursive_doubling_all_reduce(world, d, op); });
  for (int columns = 1; columns <= ranks; ++columns)
    if (ranks % columns == 0)
      one<T>(world, n, op, sk::plan::TorusAllReduce{ranks, count, columns},
             "torus of " + std::to_string(columns) + " columns" + of,
             [&](auto& d) { return sk::comm::torus_all_reduce(world, d, columns, op); });
  for (const int node : {1, 2, 3, ranks, ranks + 1})
    one<T>(world, n, op, sk::plan::HierarchicalAllReduce{ranks, count, node}, "hierarchy of " + std::to_string(node) + of,
           [&](auto& d) { return sk::comm::hierarchical_all_reduce(world, d, node, op); });
}

template <class Comm> void everything(Comm& world, std::size_t large) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{1000}, large}) {
    all<float>(world, n, sk::Sum{});
    all<double>(world, n, sk::Mean{});
  }
  all<float>(world, 100, sk::Max{});
  // Integers have no roundings: the mean is exact.
  const int ranks = world.size();
  std::vector<int> whole(77, world.rank() + 1);
  const sk::comm::Traffic t = sk::comm::ring_all_reduce(world, whole);
  require(whole == std::vector<int>(77, ranks * (ranks + 1) / 2), "ring of int");
  if (ranks <= 77) require(t.messages == 2 * (ranks - 1), "the ring sends 2 (N - 1) messages a rank");
}

/// x -> a x + b; the functor is "first the one, then the other", which does not commute.
struct Affine {
  long a, b;
};
struct Then {
  Affine operator()(Affine f, Affine g) const { return {f.a * g.a, g.a * f.b + g.b}; }
};
/// Recursive doubling reduces neighbours: an operation need not commute.
template <class Comm> void keeps_order(Comm& world) {
  std::vector<Affine> f(3, Affine{2 + world.rank() % 2, 1 - world.rank()}), g = f;
  world.all_reduce(f, Then{});
  sk::comm::recursive_doubling_all_reduce(world, g, Then{});
  for (std::size_t i = 0; i < 3; ++i)
    require(f[i].a == g[i].a && f[i].b == g[i].b, "recursive doubling in the order of the ranks");
}

/// Started, polled, with a collective of the communicator in between, and a second run at once with another tag.
template <class Comm> void overlaps(Comm& world) {
  keeps_order(world);
  const long n = 5000;
  std::vector<float> a = values<float>(world.rank(), n), b = a, c = a, staging, more;
  world.all_reduce(c);
  sk::comm::TableRun first(world, std::span<float>(a), sk::plan::RingAllReduce{world.size(), n}, sk::Sum{}, staging, 1);
  sk::comm::TableRun second(world, std::span<float>(b), sk::plan::RecursiveDoubling{world.size(), n}, sk::Sum{}, more, 2);
  world.barrier();
  for (bool done = false; !done;) {
    const bool one = first.poll(), two = second.poll();
    done = one && two;
  }
  for (std::size_t i = 0; i < a.size(); ++i)
    require(std::abs(a[i] - c[i]) < 1e-4f && std::abs(b[i] - c[i]) < 1e-4f, "two tables at a time");
}

/// Each side of a size at which the choice changes sends what its algorithm sends.
template <class Comm> void chooses(Comm& world) {
  const sk::plan::Network network{.near = {1e-5, 1e-9}, .far = {}, .node = 0, .gamma = 0};
  for (const std::size_t n : {2ul, 300000ul}) {
    const auto choice = sk::plan::cheapest_all_reduce(network, world.size(), 4.0 * static_cast<double>(n));
    std::vector<float> a = values<float>(world.rank(), n), b = a;
    world.all_reduce(a);
    const sk::comm::Traffic t = sk::comm::all_reduce_on(world, b, network);
    const sk::plan::SentByRank sent = sk::plan::with_table(
        choice, world.size(), static_cast<long>(n), [&](const auto& table) { return sk::plan::sent_by(table, world.rank()); });
    require(t == sk::comm::Traffic{sent.messages, sent.values * 4}, "the algorithm chosen by size");
    for (std::size_t i = 0; i < n; ++i) require(std::abs(a[i] - b[i]) < 1e-4f, "a value of the algorithm chosen by size");
  }
}

}  // namespace all_reduce_cases
