// SPDX-License-Identifier: Apache-2.0
// Compressed sums over ranks: of linear compressors by all-reduces of what they write, of the others by an all-gather, after
// which each rank decodes and adds in the order of the ranks.
#pragma once
#include <vector>

#include "../concepts.hpp"
#include "../fold.hpp"
#include "../span_of.hpp"
#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Sum or Mean.
template <class Op> concept AddsUp = std::same_as<Op, Sum> || std::same_as<Op, Mean>;

/// The values become the sum over ranks of what the compressor makes of each rank's. `reduce(std::span<Element>)` is an
/// all-reduce in place: of a communicator, or of a table of algorithms/. `wire` keeps its memory from call to call.
template <class C, class Reduce>
requires std::invocable<Reduce&, std::span<typename C::Element>>
void compressed_all_reduce(C& compressor, std::span<float> values, std::vector<typename C::Element>& wire, Reduce&& reduce) {
  assert_linear_compressor<C>();
  using Element = typename C::Element;
  for (int round = 0; round < C::rounds; ++round) {
    wire.resize(compressor.elements(values.size(), round));
    compressor.encode(std::span<const float>(values), std::span<Element>(wire), round);
    reduce(std::span<Element>(wire));
    if constexpr (C::rounds > 1) compressor.take(std::span<const Element>(wire), round);
  }
  compressor.decode(std::span<const Element>(wire), values);
}

/// Compresses and sums by comm.all_reduce. Blocking; allocates the wire; 2 (N - 1) / N wire_bytes leave each rank; the same
/// bits on all ranks.
template <class Comm, class C, SpanLike R, AddsUp Op = Sum>
requires Communicator<Comm>
void compressed_all_reduce(Comm& comm, C& compressor, R&& data, Op op = {}) {
  assert_linear_compressor<C>();
  if constexpr (LinearCompressor<C>) {
    const auto s = span_of<Cpu>(data);
    std::vector<typename C::Element> wire;
    compressed_all_reduce(compressor, std::span<float>(s.data, s.size), wire,
                          [&](std::span<typename C::Element> w) { comm.all_reduce(w, op); });
  }
}

/// The values become the sum over ranks of what the compressor makes of each rank's; linear or not, of one round. `gather(own,
/// all)` is an all-gather of equal pieces over `ranks`.
template <class C, AddsUp Op, class Gather>
requires std::invocable<Gather&, std::span<const typename C::Element>, std::span<typename C::Element>>
void compressed_all_gather(C& compressor, std::span<float> values, int ranks, Op, Gather&& gather) {
  assert_compressor<C>();
  static_assert(C::rounds == 1,
                "compressed_all_gather: a compressor of several rounds needs sums between them: take compressed_all_reduce");
  using Element = typename C::Element;
  const std::size_t piece = compressor.elements(values.size(), 0);
  std::vector<Element> own(piece), all(piece * static_cast<std::size_t>(ranks));
  std::vector<float> decoded(values.size());
  compressor.encode(std::span<const float>(values), std::span<Element>(own), 0);
  gather(std::span<const Element>(own), std::span<Element>(all));
  for (int r = 0; r < ranks; ++r) {
    compressor.decode(std::span<const Element>(all).subspan(static_cast<std::size_t>(r) * piece, piece),
                      std::span<float>(decoded));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = r == 0 ? decoded[i] : values[i] + decoded[i];
  }
  if constexpr (std::same_as<Op, Mean>)
    for (float& x : values) x = detail::finish<float, Mean>(x, ranks);
}

/// Compresses and sums by comm.all_gather. Blocking; allocates; (N - 1) wire_bytes come to each rank; the same bits on all
/// ranks. Pays where the compressor saves more than N / 2 times.
template <class Comm, class C, SpanLike R, AddsUp Op = Sum>
requires Communicator<Comm>
void compressed_all_gather(Comm& comm, C& compressor, R&& data, Op op = {}) {
  const auto s = span_of<Cpu>(data);
  compressed_all_gather(
      compressor, std::span<float>(s.data, s.size), comm.size(), op,
      [&](std::span<const typename C::Element> own, std::span<typename C::Element> all) { comm.all_gather(own, all); });
}

/// What n values look like after this compressor alone: encoded and decoded on one rank.
template <class C> void compress_in_place(C& compressor, std::span<float> values) {
  assert_compressor<C>();
  using Element = typename C::Element;
  std::vector<Element> wire;
  for (int round = 0; round < C::rounds; ++round) {
    wire.resize(compressor.elements(values.size(), round));
    compressor.encode(std::span<const float>(values), std::span<Element>(wire), round);
    if constexpr (C::rounds > 1) compressor.take(std::span<const Element>(wire), round);
  }
  compressor.decode(std::span<const Element>(wire), values);
}

}  // namespace skein::inline SKEIN_ABI::comm
