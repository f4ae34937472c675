// SPDX-License-Identifier: Apache-2.0
// What HostBounce must do over any communicator of the host: written once, run over threads and over MPI. For .cu tests.
#pragma once
#include <string>
#include <vector>

#include "collectives.hpp"
#include "skein/comm/cuda/host_bounce.hpp"

namespace host_bounce_cases {
namespace sk = skein;
using namespace collectives;

/// A vector on the rank's device.
template <class T> struct OnDevice {
  sk::Arena<T, sk::Cuda> arena;
  OnDevice(const std::vector<T>& v, sk::Cuda where) : arena(v.size(), where) {
    sk::Copy<sk::Cuda, sk::Cpu>::run(arena.data(), v.data(), v.size() * sizeof(T), where);
  }
  sk::DeviceSpan<T, sk::Cuda> span() { return arena.span(); }
  std::vector<T> get() {
    std::vector<T> v(arena.size());
    sk::Copy<sk::Cpu, sk::Cuda>::run(v.data(), arena.data(), v.size() * sizeof(T), {}, arena.where());
    return v;
  }
};

template <class T, class World, class Op> void staged_reductions(World& world, std::size_t n, const Op& op) {
  const int ranks = world.size(), me = world.rank();
  const std::vector<T> wanted = reduced<T>(ranks, n, op);
  OnDevice<T> data(values<T>(me, n), world.where());
  world.all_reduce(data.span(), op);
  require(same_bits(data.get(), wanted), "all_reduce");
  for (int root = 0; root < ranks; ++root) {
    OnDevice<T> mine(values<T>(me, n), world.where());
    world.reduce(mine.span(), op, root);
    require(same_bits(mine.get(), me == root ? wanted : values<T>(me, n)), "reduce");
  }
  const std::size_t whole = n * static_cast<std::size_t>(ranks);
  OnDevice<T> send(values<T>(me, whole), world.where()), part(std::vector<T>(n), world.where());
  world.reduce_scatter(send.span(), part.span(), op);
  const std::vector<T> all = reduced<T>(ranks, whole, op);
  require(same_bits(part.get(),
                    std::vector<T>(all.begin() + static_cast<long>(n) * me, all.begin() + static_cast<long>(n) * (me + 1))),
          "reduce_scatter");

  // more in flight than the ring holds, waited for in another order than started
  std::vector<OnDevice<T>> flying;
  for (int i = 0; i < 5; ++i) flying.emplace_back(values<T>(me, n), world.where());
  for (int round = 0; round < 20; ++round) {
    for (auto& f : flying)
      sk::Copy<sk::Cuda, sk::Cpu>::run(f.arena.data(), values<T>(me, n).data(), n * sizeof(T), world.where());
    auto a = world.start_all_reduce(flying[0].span(), op), b = world.start_all_reduce(flying[1].span(), op),
         c = world.start_all_reduce(flying[2].span(), op);
    auto d = world.start_broadcast(flying[3].span(), ranks - 1), e = world.start_all_reduce(flying[4].span(), op);
    e.wait();
    while (!c.poll()) {}
    a.wait();
    b.wait();
    d.wait();
  }
  for (const int i : {0, 1, 2, 4}) require(same_bits(flying[static_cast<std::size_t>(i)].get(), wanted), "started calls");
  require(same_bits(flying[3].get(), values<T>(ranks - 1, n)), "a started broadcast");
}

template <class T, class World> void staged_movements(World& world, std::size_t n) {
  const int ranks = world.size(), me = world.rank();
  std::vector<T> wanted;
  for (int r = 0; r < ranks; ++r)
    for (const T x : values<T>(r, n)) wanted.push_back(x);
  OnDevice<T> mine(values<T>(me, n), world.where()), all(std::vector<T>(wanted.size()), world.where());
  world.all_gather(mine.span(), all.span());
  require(same_bits(all.get(), wanted), "all_gather");
  std::vector<std::size_t> counts;
  wanted.clear();
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(r % 3 == 1 ? 0 : n + static_cast<std::size_t>(r));
    for (const T x : values<T>(r, counts.back())) wanted.push_back(x);
  }
  OnDevice<T> piece(values<T>(me, counts[static_cast<std::size_t>(me)]), world.where()),
      joined(std::vector<T>(wanted.size()), world.where());
  world.all_gather_v(piece.span(), counts, joined.span());
  require(same_bits(joined.get(), wanted), "all_gather_v");
  // a piece that is part of the whole
  OnDevice<T> joint(std::vector<T>(n * static_cast<std::size_t>(ranks)), world.where());
  const std::size_t at = n * static_cast<std::size_t>(me);
  sk::Copy<sk::Cuda, sk::Cpu>::run(joint.arena.data() + at, values<T>(me, n).data(), n * sizeof(T), world.where());
  world.all_gather(joint.span().sub(at, at + n), joint.span());
  require(same_bits(joint.get(), all.get()), "all_gather in place");
  const int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
  OnDevice<T> token(values<T>(me, n), world.where()), came(std::vector<T>(n), world.where());
  auto incoming = world.irecv(came.span(), from, 5);
  world.send(token.span(), to, 5);
  incoming.wait();
  require(same_bits(came.get(), values<T>(from, n)) && incoming.peer() == from, "a ring of messages");
}

template <class World> void staged_everything(World& world) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{30000}}) {
    staged_reductions<float>(world, n, sk::Sum{});
    staged_reductions<double>(world, n, sk::Mean{});
    staged_reductions<float>(world, n, Weighted{3});
    staged_movements<float>(world, n);
  }
  const int ranks = world.size(), me = world.rank();
  require(world.all_reduce(me + 1) == ranks * (ranks + 1) / 2, "one int of the host");
  double sums[2] = {1.0 * me, 2.0};
  world.all_reduce(sk::DeviceSpan<double, sk::Cpu>(sums, 2));
  require(sums[1] == 2.0 * ranks, "a span of the host");
  world.assert_same("the plan", 17);
  auto half = world.split(me % 2);
  OnDevice<float> data(std::vector<float>(100, 1.0f), world.where());
  half.all_reduce(data.span());
  require(data.get() == std::vector<float>(100, static_cast<float>((ranks + 1 - me % 2) / 2)), "all_reduce in a part");
  world.barrier();
}

}  // namespace host_bounce_cases
