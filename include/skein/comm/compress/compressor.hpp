// SPDX-License-Identifier: Apache-2.0
// What a compressor is: a type that writes n floats as fewer bytes and reads them back, says how many bytes that are, and whether
// it is linear: whether values that were encoded apart can be added as they are. What is not linear cannot be given to an
// all-reduce: its sums mean nothing; it travels by an all-gather, and each rank decodes and adds (compressed_collectives.hpp).
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "../op.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// name, linear, rounds (messages of the compressor that depend on each other: 1 or more, 2 for PowerSgd), Element (what the wire
/// is made of).
template <class C> concept NamesItsElements = requires {
  { C::name } -> std::convertible_to<std::string_view>;
  { C::linear } -> std::convertible_to<bool>;
  { C::rounds } -> std::convertible_to<int>;
  typename C::Element;
  requires Transportable<typename C::Element> && C::rounds >= 1;
};
/// How many elements n values are on the wire, in a round; before anything is encoded.
template <class C> concept CountsItsBytes = requires(const C& c, std::size_t n, int round) {
  { c.elements(n, round) } -> std::same_as<std::size_t>;
};
/// encode(values, wire, round) writes exactly elements(n, round) elements; decode(wire, values) reads those of the last round.
template <class C>
concept Encodes = requires(C& c, std::span<const float> values, std::span<typename C::Element> wire, int round) {
  c.encode(values, wire, round);
};
/// C turns what came over the wire back into values.
template <class C> concept Decodes = requires(C& c, std::span<const typename C::Element> wire, std::span<float> values) {
  c.decode(wire, values);
};

/// take(wire, round): what all ranks have made of a round's wire, before the next begins, and after the last one.
template <class C> concept TakesSums = requires(C& c, std::span<const typename C::Element> wire, int round) {
  c.take(wire, round);
};

/// A compressor. One with several rounds also takes the sums between them.
template <class C> concept Compressor = NamesItsElements<C> && CountsItsBytes<C> && Encodes<C> && Decodes<C> &&
    (C::rounds == 1 || TakesSums<C>);

/// C declares that it keeps what it has left out, one float a value: keeps_residual, with residual() and set_residual(floats). A
/// training saves it.
template <class C> concept KeepsResidual = requires { requires C::keeps_residual; };
/// C declares that it learns, the same on all ranks: remembers, with memory(), of as many floats as its last wire has elements,
/// or empty before the first call, and remember(floats, n). A training saves it.
template <class C> concept Remembers = requires { requires C::remembers; };
/// C declares that it wants to know the rows of a matrix: by_matrix, with a static for_matrix(seed, rows).
template <class C> concept TakesMatrices = requires { requires C::by_matrix; };

/// Encoded values may be added on the wire.
template <class C> concept LinearCompressor = Compressor<C> && bool(C::linear) && BuiltinScalar<typename C::Element>;

namespace detail {
template <class C> inline constexpr bool is_a_compressor = false;
template <class C> inline constexpr bool is_linear = false;

template <class C> concept HasResidual = requires(const C& c, C& to, std::span<const float> kept) {
  { c.residual() } -> std::same_as<std::span<const float>>;
  to.set_residual(kept);
};
template <class C> concept HasMemory = requires(const C& c, C& to, std::span<const float> kept, std::size_t n) {
  { c.memory() } -> std::same_as<std::span<const float>>;
  to.remember(kept, n);
};
template <class C> concept HasForMatrix = requires(std::uint64_t seed, std::size_t rows) {
  { C::for_matrix(seed, rows) } -> std::same_as<C>;
};
template <class C> concept CallsResidual = requires(C& c) { c.residual(); };
template <class C> concept CallsMemory = requires(C& c) { c.memory(); };
template <class C> concept CallsForMatrix = requires(std::uint64_t seed, std::size_t rows) { C::for_matrix(seed, rows); };

/// What a compressor has beside, it declares: a function with another signature is not left out in silence.
template <class C> consteval void assert_declared() {
  static_assert(KeepsResidual<C> ? HasResidual<C> : !CallsResidual<C>,
                "a compressor has std::span<const float> residual() const and set_residual(std::span<const float>), and declares "
                "keeps_residual = true: all or none");
  static_assert(Remembers<C> ? HasMemory<C> : !CallsMemory<C>,
                "a compressor has std::span<const float> memory() const and remember(std::span<const float>, std::size_t n), and "
                "declares remembers = true: all or none");
  static_assert(TakesMatrices<C> ? HasForMatrix<C> : !CallsForMatrix<C>,
                "a compressor has a static for_matrix(std::uint64_t seed, std::size_t rows) that returns one, and declares "
                "by_matrix = true: both or neither");
}
}  // namespace detail

/// Refuses at compile time, with one sentence, a type that is no compressor.
template <class C> consteval void assert_compressor() {
  if constexpr (!NamesItsElements<C>)
    static_assert(detail::is_a_compressor<C>,
                  "a compressor says what it is: it needs a static name, linear, rounds (1 or more), and a trivially copyable "
                  "type Element");
  else if constexpr (!CountsItsBytes<C>)
    static_assert(detail::is_a_compressor<C>,
                  "a compressor says how long its wire is: it needs std::size_t elements(std::size_t n, int round) const");
  else if constexpr (!Encodes<C>)
    static_assert(detail::is_a_compressor<C>,
                  "a compressor writes its wire: it needs encode(std::span<const float>, std::span<Element>, int round)");
  else if constexpr (!Decodes<C>)
    static_assert(detail::is_a_compressor<C>,
                  "a compressor reads its wire: it needs decode(std::span<const Element>, std::span<float>)");
  else if constexpr (C::rounds > 1 && !TakesSums<C>)
    static_assert(detail::is_a_compressor<C>,
                  "a compressor of several rounds hears what all ranks have made of each: it needs "
                  "take(std::span<const Element>, int round)");
  else detail::assert_declared<C>();
}

/// Refuses also what is not linear.
template <class C> consteval void assert_linear_compressor() {
  assert_compressor<C>();
  if constexpr (Compressor<C> && !LinearCompressor<C>)
    static_assert(
        detail::is_linear<C>,
        "this compressor is not linear, so it cannot be given to an all-reduce: sums of what it writes mean nothing. Take "
        "compressed_all_gather, or a linear one (HalfCodec<bf16>, HalfCodec<fp16>, PowerSgd)");
}

/// Bytes that n values are on the wire, over all rounds. constexpr where the compressor is.
template <Compressor C> constexpr std::size_t wire_bytes(const C& c, std::size_t n) {
  std::size_t bytes = 0;
  for (int round = 0; round < C::rounds; ++round) bytes += c.elements(n, round) * sizeof(typename C::Element);
  return bytes;
}

}  // namespace skein::inline SKEIN_ABI::comm
