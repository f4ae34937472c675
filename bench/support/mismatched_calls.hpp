// SPDX-License-Identifier: Apache-2.0
// Collectives that do not match: one rank of several calls another operation, or the same with another count, type, reduction or
// root, once less or once more; or it leaves, or throws. What the ranks are told, and whether that names the rank and the calls.
#pragma once
#include <array>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <skein/comm/op.hpp>
#include <skein/core/error.hpp>

namespace bench {

struct MismatchedCalls {
  enum Operation { barrier, broadcast, all_reduce, reduce, reduce_scatter, all_gather, all_to_all };
  enum Kind { operation, count, type, reduction, root, missing, more, leaves, throws };
  static constexpr std::array<std::string_view, 7> operations{"barrier",        "broadcast",  "all_reduce", "reduce",
                                                              "reduce_scatter", "all_gather", "all_to_all"};
  static constexpr std::array<std::string_view, 9> kinds{"operation", "count", "type",   "reduction", "root",
                                                         "missing",   "more",  "leaves", "throws"};
  Operation call = barrier;
  Kind kind = operation;
  int ranks = 2, odd = 0;  ///< the rank that differs
  std::size_t values = 1;  ///< of each rank, or piece

  std::string name() const {
    return std::string(kinds[kind]) + " of " + std::string(operations[call]) + ", " + std::to_string(values) + " values, rank " +
           std::to_string(odd) + " of " + std::to_string(ranks);
  }
  bool rank_ends() const { return kind == leaves || kind == throws; }

  /// All that there are for so many ranks.
  static std::vector<MismatchedCalls> all(int ranks) {
    std::vector<MismatchedCalls> found;
    for (const std::size_t values : {std::size_t{3}, std::size_t{40000}})
      for (int o = barrier; o <= all_to_all; ++o)
        for (int k = operation; k <= throws; ++k) {
          if (o == barrier && (k == count || k == type || values > 3)) continue;
          if (k == reduction && o != all_reduce && o != reduce && o != reduce_scatter) continue;
          if (k == root && o != broadcast && o != reduce) continue;
          if ((k == leaves || k == throws) && values > 3) continue;
          found.push_back({static_cast<Operation>(o), static_cast<Kind>(k), ranks, (o + k) % ranks, values});
        }
    return found;
  }

  /// What this rank makes of it; throws what the communicator says. The rank that leaves, or throws, does not come back here
  /// before the others are done: see is_gone().
  template <class Comm> void run(Comm& world) const {
    const bool mine = world.rank() == odd;
    one<float>(world, all_reduce, 8, 0, skein::Sum{});  // they have agreed before
    if (mine && kind == leaves) return;
    if (mine && kind == throws) throw std::runtime_error("no data here");
    if (mine && kind == operation) one<float>(world, other(), values, 0, skein::Sum{});
    else if (mine && kind == count) one<float>(world, call, values + 1, 0, skein::Sum{});
    else if (mine && kind == type) one<double>(world, call, values, 0, skein::Sum{});
    else if (mine && kind == reduction) one<float>(world, call, values, 0, skein::Max{});
    else if (mine && kind == root) one<float>(world, call, values, 1, skein::Sum{});
    else if (mine && kind == missing) {
    } else one<float>(world, call, values, 0, skein::Sum{});
    if (mine && kind == more) one<float>(world, call, values, 0, skein::Sum{});
    for (int i = 0; i < 3; ++i) one<float>(world, last(), 5, 0, skein::Sum{});
  }
  /// The rank has no message.
  bool is_gone(int rank) const { return rank_ends() && rank == odd; }

  /// The text names the rank that differs and what is called: of both kinds, where two calls differ.
  bool named_by(const std::string& text) const {
    const std::string own = "rank " + std::to_string(odd);
    const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
    if (rank_ends()) return has(own) && (kind == throws || has(operations[call]) || has(operations[last()]));
    const std::string_view second = kind == operation                 ? operations[other()]
                                    : kind == missing || kind == more ? operations[last()]
                                                                      : operations[call];
    return has("differs between ranks: ") && has(own + ": ") && has(operations[call]) && has(second);
  }

 private:
  Operation other() const { return static_cast<Operation>((call + 1) % 7); }
  Operation last() const { return call == barrier ? all_reduce : barrier; }

  /// After a failure they stay: MPI may still write into them.
  template <class T> struct Buffers {
    Buffers(std::size_t n, std::size_t ranks)
        : own(new std::vector<T>(n, T(1))), all(new std::vector<T>(n * ranks, T(1))), more(new std::vector<T>(n * ranks, T(1))) {}
    Buffers(const Buffers&) = delete;
    ~Buffers() {
      if (std::uncaught_exceptions() > 0) {
        static std::mutex mutex;
        static auto* const kept = new std::vector<std::vector<T>*>;
        const std::lock_guard lock(mutex);
        kept->insert(kept->end(), {own, all, more});
        return;
      }
      delete own;
      delete all;
      delete more;
    }
    std::vector<T>*own, *all, *more;
  };

  template <class T, class Comm, class Op> static void one(Comm& world, Operation what, std::size_t n, int root, Op op) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const Buffers<T> b(n, ranks);
    auto &own = *b.own, &all = *b.all, &more = *b.more;
    switch (what) {
      case barrier:
        return world.barrier();
      case broadcast:
        return world.broadcast(own, root);
      case all_reduce:
        return world.all_reduce(own, op);
      case reduce:
        return world.reduce(own, op, root);
      case reduce_scatter:
        return world.reduce_scatter(all, own, op);
      case all_gather:
        return world.all_gather(own, all);
      case all_to_all:
        return world.all_to_all(all, more);
    }
  }
};

/// What each rank was told, and the seconds until the last was.
struct ToldOfMismatch {
  std::vector<std::string> texts;
  double seconds = 0;

  /// What is wrong with it; "" where each rank has the same message, which names the fault, within `limit` seconds.
  std::string fault(const MismatchedCalls& c, double limit) const {
    std::string first;
    for (int r = 0; r < c.ranks; ++r) {
      const std::string& text = texts[static_cast<std::size_t>(r)];
      if (c.is_gone(r)) continue;
      if (!c.named_by(text)) return c.name() + ": rank " + std::to_string(r) + " is told: '" + text + "'";
      if (first.empty()) first = text;
      if (text != first) return c.name() + ": two messages: '" + first + "' and '" + text + "'";
    }
    return seconds > limit ? c.name() + ": " + std::to_string(seconds) + " s" : "";
  }
};

/// What f throws, and "" where it does not.
template <class Function> std::string thrown_by(Function&& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "";
}
/// Ranks that are threads. `make(world)`: their communicator, of the threads'.
template <class Spawn, class Make> ToldOfMismatch told_of(const MismatchedCalls& c, const Spawn& spawn, const Make& make) {
  ToldOfMismatch told{std::vector<std::string>(static_cast<std::size_t>(c.ranks)), 0};
  const auto begin = std::chrono::steady_clock::now();
  (void)thrown_by([&] {
    spawn(c.ranks, [&](auto& threads) {
      auto&& world = make(threads);
      const auto rank = static_cast<std::size_t>(threads.rank());
      try {
        c.run(world);
      } catch (const std::exception& e) {
        told.texts[rank] = e.what();
        throw;
      }
    });
  });
  told.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return told;
}

}  // namespace bench
