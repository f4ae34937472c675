// SPDX-License-Identifier: Apache-2.0
// Every collective of a communicator against its serial twin, bit for bit: the same checks for threads, shared memory and
// messages. Failures are exceptions (Catch2's assertions are not for threads); spawn and the MPI main carry them to the report.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <span>

#include "skein/comm/concepts.hpp"
#include "skein/comm/messages.hpp"

namespace collectives {
namespace sk = skein;

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// Irregular values whose sum depends on the order of the ranks.
template <class T> T value(int rank, std::size_t i) {
  const auto x =
      static_cast<double>((static_cast<unsigned>(rank + 1) * 2654435761u + static_cast<unsigned>(i) * 40503u) % 10007u);
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>((x - 5000.0) * 0.37 + 1.0 / (x + 3.0));
  else return static_cast<T>(static_cast<long>(x) % 11);
}
template <class T> std::vector<T> values(int rank, std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = value<T>(rank, i);
  return v;
}
template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Not commutative, so that a change of order shows: the later rank counts double.
struct Weighted {
  float weight = 2;
  template <class T> T operator()(T a, T b) const { return static_cast<T>(a + static_cast<T>(weight) * b); }
};

/// The serial twin: values meet in the order of the ranks.
template <class T, class Op> std::vector<T> reduced(int ranks, std::size_t n, const Op& op) {
  std::vector<T> sum = values<T>(0, n);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<T> next = values<T>(r, n);
    for (std::size_t i = 0; i < n; ++i) sum[i] = op(sum[i], next[i]);
  }
  if constexpr (std::is_same_v<Op, sk::Mean>)
    for (T& x : sum)
      x = std::is_floating_point_v<T> ? static_cast<T>(x * (T(1) / static_cast<T>(ranks)))
                                      : static_cast<T>(x / static_cast<T>(ranks));
  return sum;
}

template <class T, class Comm, class Op> void reductions(Comm& world, std::size_t n, const Op& op) {
  const int ranks = world.size(), me = world.rank();
  const std::string at =
      " of " + std::to_string(n) + " values of " + std::to_string(sizeof(T)) + " bytes on " + std::to_string(ranks) + " ranks";
  const std::vector<T> wanted = reduced<T>(ranks, n, op);

  std::vector<T> data = values<T>(me, n);
  world.all_reduce(data, op);
  require(same_bits(data, wanted), "all_reduce" + at);

  for (int root = 0; root < ranks; ++root) {
    data = values<T>(me, n);
    world.reduce(data, op, root);
    require(same_bits(data, me == root ? wanted : values<T>(me, n)), "reduce" + at);
  }

  const std::size_t whole = n * static_cast<std::size_t>(ranks);
  const std::vector<T> all = reduced<T>(ranks, whole, op);
  std::vector<T> send = values<T>(me, whole), part(n);
  world.reduce_scatter(send, part, op);
  require(same_bits(part, std::vector<T>(all.begin() + static_cast<long>(n) * me, all.begin() + static_cast<long>(n) * (me + 1))),
          "reduce_scatter" + at);
  require(same_bits(send, values<T>(me, whole)), "reduce_scatter changed what it sends" + at);

  std::vector<std::size_t> counts;
  std::size_t sum = 0, before = 0;
  for (int r = 0; r < ranks; ++r) {
    if (r == me) before = sum;
    counts.push_back(n + static_cast<std::size_t>(r * r % 5));
    sum += counts.back();
  }
  const std::vector<T> uneven = reduced<T>(ranks, sum, op);
  part.assign(counts[static_cast<std::size_t>(me)], T{});
  send = values<T>(me, sum);
  world.reduce_scatter_v(send, counts, part, op);
  require(same_bits(part, std::vector<T>(uneven.begin() + static_cast<long>(before),
                                         uneven.begin() + static_cast<long>(before + part.size()))),
          "reduce_scatter_v" + at);

  // several in flight, waited for in another order than started, polled in between
  std::array<std::vector<T>, 5> flying;
  for (auto& f : flying) f = values<T>(me, n);
  auto a = world.start_all_reduce(flying[0], op), b = world.start_all_reduce(flying[1], op),
       c = world.start_all_reduce(flying[2], op);
  auto d = world.start_broadcast(flying[3], ranks - 1), e = world.start_all_reduce(flying[4], op);
  e.wait();
  while (!c.poll()) {}
  a.wait();
  b.wait();
  d.wait();
  require(a.done() && e.done() && same_bits(flying[0], wanted) && same_bits(flying[1], wanted) && same_bits(flying[2], wanted) &&
              same_bits(flying[4], wanted) && same_bits(flying[3], values<T>(ranks - 1, n)),
          "started calls" + at);
}

template <class T, class Comm> void movements(Comm& world, std::size_t n) {
  const int ranks = world.size(), me = world.rank();
  const std::string at =
      " of " + std::to_string(n) + " values of " + std::to_string(sizeof(T)) + " bytes on " + std::to_string(ranks) + " ranks";
  for (int root = 0; root < ranks; ++root) {
    std::vector<T> data = values<T>(me, n);
    world.broadcast(data, root);
    require(same_bits(data, values<T>(root, n)), "broadcast" + at);
  }
  std::vector<T> wanted, got(n * static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r)
    for (const T x : values<T>(r, n)) wanted.push_back(x);
  world.all_gather(values<T>(me, n), got);
  require(same_bits(got, wanted), "all_gather" + at);

  std::vector<std::size_t> counts;
  wanted.clear();
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(r % 3 == 1 ? 0 : n + static_cast<std::size_t>(r));
    for (const T x : values<T>(r, counts.back())) wanted.push_back(x);
  }
  got.assign(wanted.size(), T{});
  world.all_gather_v(values<T>(me, counts[static_cast<std::size_t>(me)]), counts, got);
  require(same_bits(got, wanted), "all_gather_v" + at);

  std::vector<T> send;
  wanted.clear();
  for (int r = 0; r < ranks; ++r) {
    for (const T x : values<T>(me * 100 + r, n)) send.push_back(x);
    for (const T x : values<T>(r * 100 + me, n)) wanted.push_back(x);
  }
  got.assign(send.size(), T{});
  world.all_to_all(send, got);
  require(same_bits(got, wanted), "all_to_all" + at);

  const int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
  std::vector<T> in(n);
  const std::vector<T> out = values<T>(me, n);
  auto incoming = world.irecv(in, from, 5);
  world.send(out, to, 5);
  incoming.wait();
  require(same_bits(in, values<T>(from, n)) && incoming.peer() == from, "a ring of messages" + at);
}

template <class Comm> void conveniences(Comm& world) {
  const int ranks = world.size(), me = world.rank();
  require(world.all_reduce(me + 1) == ranks * (ranks + 1) / 2, "all_reduce of one int");
  require(world.all_reduce(1.5 * me, sk::Max{}) == 1.5 * (ranks - 1), "all_reduce of one double");
  require(world.broadcast(me * 10, ranks - 1) == (ranks - 1) * 10, "broadcast of one int");
  const std::vector<std::string> texts = world.all_gather("rank " + std::string(static_cast<std::size_t>(me), 'x'));
  for (int r = 0; r < ranks; ++r)
    require(texts[static_cast<std::size_t>(r)] == "rank " + std::string(static_cast<std::size_t>(r), 'x'), "all_gather of texts");
  require(world.broadcast(std::string(me == 0 ? "from the root" : ""), 0) == "from the root", "broadcast of a text");
  struct Pair {
    int a;
    double b;
  };
  const long own[] = {me, -me};
  const std::vector<long> joined = world.all_gather(std::span(own));
  require(joined.size() == 2 * static_cast<std::size_t>(ranks), "all_gather of two numbers a rank");
  for (std::size_t r = 0; 2 * r < joined.size(); ++r)
    require(joined[2 * r] == static_cast<long>(r) && joined[2 * r + 1] == -joined[2 * r], "the numbers of a rank");
  const std::vector<Pair> pairs = world.all_gather(Pair{me, 0.5 * me});
  require(pairs.back().a == ranks - 1 && pairs.back().b == 0.5 * (ranks - 1), "all_gather of a struct");
  for (int i = 0; i < 100; ++i) world.barrier();

  // short messages do not wait for their receiver; whoever comes first is received from any_rank
  int token = me, got = -1;
  world.send(std::span<int>(&token, 1), (me + 1) % ranks, 9);
  require(world.recv(std::span<int>(&got, 1), sk::any_rank, 9) == (me + ranks - 1) % ranks && got == (me + ranks - 1) % ranks,
          "a token round the ring");

  world.assert_same("the plan", "equal on all");
  std::string said;
  try {
    world.assert_same("the plan of the step", me == ranks - 1 ? "LeNet" : "ResNet");
  } catch (const sk::CommError& e) { said = e.what(); }
  const std::string wanted = ranks == 1 ? "" : "the plan of the step differs between ranks: ";
  require(said.substr(0, wanted.size()) == wanted && (ranks == 1) == said.empty(), "assert_same says: " + said);
  if (ranks == 3)
    require(said ==
                "the plan of the step differs between ranks: ranks 0, 1: ResNet; rank 2: LeNet. Start every rank with the same "
                "program and options",
            said);
}

template <class Comm> void splits(Comm& world) {
  const int ranks = world.size(), me = world.rank();
  auto half = world.split(me % 2, -me);  // colours even and odd, in falling order
  const int members = (ranks + 1 - me % 2) / 2;
  require(half.size() == members && half.rank() == members - 1 - me / 2, "split places a rank wrongly");
  int sum = 0;
  for (int r = me % 2; r < ranks; r += 2) sum += r;
  require(half.all_reduce(me) == sum, "all_reduce in a part");
  std::vector<float> data = values<float>(half.rank(), 30000);
  half.all_reduce(data);
  require(same_bits(data, reduced<float>(half.size(), 30000, sk::Sum{})), "a long all_reduce in a part");
  auto alone = half.split(half.rank());
  require(alone.size() == 1 && alone.all_reduce(7) == 7, "a part of one");
  world.barrier();
}

/// Everything above. `most`: values of the longest buffer.
template <class Comm> void everything(Comm& world, std::size_t most) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{1000}, most}) {
    reductions<float>(world, n, sk::Sum{});
    reductions<float>(world, n, sk::Mean{});
    reductions<double>(world, n, sk::Sum{});
    reductions<float>(world, n, Weighted{3});
    movements<float>(world, n);
    movements<char>(world, n);
  }
  for (const std::size_t n : {std::size_t{1}, std::size_t{333}}) {
    reductions<float>(world, n, sk::Max{});
    reductions<double>(world, n, sk::Min{});
    reductions<double>(world, n, sk::Mean{});
    reductions<std::int32_t>(world, n, sk::Sum{});
    reductions<std::int64_t>(world, n, sk::Mean{});
    reductions<std::uint64_t>(world, n, sk::Max{});
    reductions<char>(world, n, sk::Sum{});
    movements<std::int64_t>(world, n);
  }
  conveniences(world);
  splits(world);
}

}  // namespace collectives
