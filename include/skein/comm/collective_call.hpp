// SPDX-License-Identifier: Apache-2.0
// One collective as data: what the typed interface (collectives.hpp) hands to an engine, and what ranks compare before they
// touch each other's memory. Nothing here is for users.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/hash.hpp"
#include "fold.hpp"
#include "public_call.hpp"
#include "rank_names.hpp"

namespace skein::inline SKEIN_ABI::comm {

enum class Collective : std::uint8_t { Barrier, Broadcast, AllReduce, Reduce, ReduceScatter, AllGather, AllToAll };

inline constexpr std::string_view collective_names[] = {"barrier",        "broadcast",  "all_reduce", "reduce",
                                                        "reduce_scatter", "all_gather", "all_to_all"};
inline constexpr std::string_view scalar_names[] = {"bytes", "float",  "double", "int8",   "uint8", "int16", "uint16",
                                                    "int32", "uint32", "int64",  "uint64", "bf16",  "fp16"};
inline constexpr std::string_view reduction_names[] = {"", "Sum", "Mean", "Max", "Min", "a user's function"};

/// An index into scalar_names.
template <class T> constexpr std::uint8_t scalar_code() {
  if constexpr (std::is_same_v<T, float>) return 1;
  else if constexpr (std::is_same_v<T, double>) return 2;
  else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8)
    return static_cast<std::uint8_t>((sizeof(T) == 1   ? 3
                                      : sizeof(T) == 2 ? 5
                                      : sizeof(T) == 4 ? 7
                                                       : 9) +
                                     (std::is_unsigned_v<T> ? 1 : 0));
  else if constexpr (std::is_same_v<T, bf16>) return 11;
  else if constexpr (std::is_same_v<T, fp16>) return 12;
  else return 0;
}

/// An index into reduction_names.
template <class Op> constexpr std::uint8_t reduction_code() {
  return std::is_same_v<Op, Sum>    ? 1
         : std::is_same_v<Op, Mean> ? 2
         : std::is_same_v<Op, Max>  ? 3
         : std::is_same_v<Op, Min>  ? 4
                                    : 5;
}

/// What all ranks must agree on in one call.
struct Signature {
  Collective kind = Collective::Barrier;
  std::uint8_t scalar = 0, reduction = 0;
  std::uint8_t within = 0;  ///< the public call that it is part of (InPublicCall::next)
  std::int32_t root = 0;
  std::uint64_t element = 1, count = 0, counts_hash = 0;
  std::uint64_t shared_at = 0;  ///< where the span lies in shared pages, by a count that all ranks keep alike; 0: it does not

  std::uint8_t public_call() const { return within & static_cast<std::uint8_t>(~InPublicCall::opens); }
  /// It is the first collective of its public call, on this rank: it may be another one's on others.
  bool opens() const { return within != public_call(); }
  /// What is compared.
  Signature compared() const {
    Signature s = *this;
    s.within = public_call();
    return s;
  }
  friend bool operator==(const Signature& a, const Signature& b) {
    return a.kind == b.kind && a.scalar == b.scalar && a.reduction == b.reduction && a.public_call() == b.public_call() &&
           a.root == b.root && a.element == b.element && a.count == b.count && a.counts_hash == b.counts_hash &&
           a.shared_at == b.shared_at;
  }
};

/// Its codes are of this library: a signature that another process sent may hold anything.
inline bool is_known(const Signature& s) {
  return static_cast<std::size_t>(s.kind) < std::size(collective_names) && s.scalar < std::size(scalar_names) &&
         s.reduction < std::size(reduction_names) && s.public_call() < std::size(public_call_names);
}

/// "all_reduce(Sum) of 512 float"; a root is named as the names say.
std::string describe(const Signature& s, const RankNames& names = {});

/// A part of a buffer, in elements.
struct Piece {
  std::size_t offset = 0, count = 0;
};

/// One call: the signature, this rank's buffers (send and recv may be the same), and the loop that reduces.
struct CollectiveCall {
  Signature signature;
  const std::size_t* counts = nullptr;  // v-forms: elements of each rank's piece; alive until the call is done
  const void* send = nullptr;
  void* recv = nullptr;
  Fold fold = nullptr;  // of all ranks at once, finished
  Fold pair = nullptr;  // of two partial results; `finish` then makes the result (null where there is nothing left to do)
  void (*finish)(void* data, std::size_t n, int ranks) = nullptr;
  alignas(16) unsigned char functor[32] = {};

  const char* from() const { return static_cast<const char*>(send); }
  char* into() const { return static_cast<char*>(recv); }
  std::size_t bytes(std::size_t elements) const { return elements * signature.element; }
  /// Rank r's piece of the longer buffer of all_gather, reduce_scatter, all_to_all.
  Piece piece(int r) const {
    if (!counts) return {static_cast<std::size_t>(r) * signature.count, signature.count};
    std::size_t offset = 0;
    for (int i = 0; i < r; ++i) offset += counts[i];
    return {offset, counts[r]};
  }
  /// Bytes that a rank gives, of so many ranks; of a broadcast its root alone gives them.
  std::size_t sent_bytes(int rank, int ranks) const;
  /// Bytes that a rank's call writes; of a reduce its root alone writes them.
  std::size_t received_bytes(int rank, int ranks) const;
  std::size_t largest_piece(int ranks) const {
    if (!counts) return signature.count;
    std::size_t most = 0;
    for (int i = 0; i < ranks; ++i) most = counts[i] > most ? counts[i] : most;
    return most;
  }
};

/// Rank r's part of [0, n) in blocks of a cache line or more, so that no two ranks write one line.
inline Piece slice_of(std::size_t n, std::size_t element, int r, int ranks) {
  const std::size_t grain = element >= 64 ? 1 : (64 + element - 1) / element, blocks = (n + grain - 1) / grain;
  const auto at = [&](int i) {
    const std::size_t e = blocks * static_cast<std::size_t>(i) / static_cast<std::size_t>(ranks) * grain;
    return e < n ? e : n;
  };
  return {at(r), at(r + 1) - at(r)};
}

/// What a sentence about calls that do not match begins with, where ranks are in different public calls: "save is a call of all
/// ranks: rank 1 has not called it; it is in fit. "; else nothing. Each with its rank.
std::string public_calls_text(const std::vector<std::pair<int, Signature>>& calls, const RankNames& names);
/// What a sentence about a missing rank begins with, where the waiting one has just come into a public call: "save is a call of
/// all ranks: rank 1 has not called it. "; else nothing. `missing`: as ranks_text says them.
std::string not_called_text(const Signature& s, std::string_view missing);

/// The sentence for calls that do not match: groups of ranks with equal calls. `calls`: of each rank that
/// is compared, in order.
std::string mismatch_text(unsigned long long call, const RankNames& names, const std::vector<std::pair<int, Signature>>& calls);
std::string mismatch_text(unsigned long long call, const RankNames& names, OfRank<Signature> of);

/// A call on a rank, for messages.
struct CallPlace {
  const char* call;
  int rank, ranks;
};
/// Throws ArgumentError: there is no rank r.
[[noreturn]] void throw_no_rank(int r, const CallPlace& place);
/// Throws ArgumentError where the color of a split is below 0.
void check_color(int color);
/// The pieces of a call that cuts `whole` values into one piece a rank, of which this rank has `part`: equal ones, or `counts`.
/// Throws ArgumentError where they do not add up.
void set_counts(CollectiveCall& o, const CallPlace& place, std::size_t whole, std::size_t part,
                std::span<const std::size_t> counts);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "collective_call.ipp"
#endif
