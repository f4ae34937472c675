// SPDX-License-Identifier: Apache-2.0
// Options of DataParallel that are types. Some choose the exchange of gradients (Compress, Algorithm, Sharded<2>, ExchangeBy,
// Reproducible): there is one. Others change in which steps it happens or what else a step does: they wrap the policy state,
// DataParallel<Comm, A, B> trains with A::Around<B::Around<...>>, so that what is not chosen costs nothing. What contradicts each
// other is refused here, by kind.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The kinds of options. DataParallel takes at most one of each kind.
enum class OptionKind {
  when,          ///< the steps in which gradients are exchanged
  compress,      ///< the encoding of gradients
  algorithm,     ///< the algorithm of the all-reduce
  exchange,      ///< an exchange of the user
  sharding,      ///< each rank keeps a part of the optimizer's state
  reproducible,  ///< virtual shards: the same bits on any number of ranks
  statistics,    ///< statistics of layers over all ranks
  curvature,     ///< who keeps the inverses of K-FAC
};

/// What an option does not say itself. Each derives from it, and has its `kind`.
struct OptionBase {
  /// The policy state with what the option adds around it.
  template <class Inner> using Around = Inner;
  /// The exchange that the option chooses, where E was chosen before.
  template <class E> using Exchange = E;
  /// Its name and numbers, where its exchange does not say them: ranks compare them.
  static std::string described() { return {}; }
  /// Gradients are summed by a reduce-scatter, which no other option may replace.
  static constexpr bool scatters_gradients = false;
  /// Each rank updates a slice of the parameters, in place of all.
  static constexpr bool slices_updates = false;
};

namespace detail {
enum class OptionFault { none, twice, reproducible, sharded_when, sharded_exchange, own_exchange };

/// Kinds that cannot go together.
constexpr OptionFault clash(OptionKind a, OptionKind b) {
  if (a == b) return OptionFault::twice;
  const auto either = [&](OptionKind k) { return a == k || b == k; };
  if (either(OptionKind::reproducible)) return OptionFault::reproducible;
  if (either(OptionKind::sharding) && either(OptionKind::when)) return OptionFault::sharded_when;
  if (either(OptionKind::exchange) && (either(OptionKind::compress) || either(OptionKind::algorithm)))
    return OptionFault::own_exchange;
  return OptionFault::none;
}
template <class... Options> consteval OptionFault first_clash() {
  constexpr std::array<OptionKind, sizeof...(Options)> kinds{Options::kind...};
  for (const OptionKind k : kinds)
    if ((Options::scatters_gradients || ...) &&
        (k == OptionKind::compress || k == OptionKind::algorithm || k == OptionKind::exchange))
      return OptionFault::sharded_exchange;
  for (auto a = kinds.begin(); a != kinds.end(); ++a)
    for (auto b = a + 1; b != kinds.end(); ++b)
      if (const OptionFault f = clash(*a, *b); f != OptionFault::none) return f;
  return OptionFault::none;
}
template <class Inner, class... Options> struct Wrapped { using type = Inner; };
template <class Inner, class First, class... Rest> struct Wrapped<Inner, First, Rest...> {
  using type = typename First::template Around<typename Wrapped<Inner, Rest...>::type>;
};
template <class...> inline constexpr bool fits_together = false;

template <class Exchange, class... Options> struct ChosenExchange { using type = Exchange; };
template <class Exchange, class First, class... Rest> struct ChosenExchange<Exchange, First, Rest...> {
  using type = typename ChosenExchange<typename First::template Exchange<Exchange>, Rest...>::type;
};
}  // namespace detail

/// A type that DataParallel takes as an option.
template <class O> concept DataParallelOption = std::derived_from<O, OptionBase> && requires {
  { O::kind } -> std::convertible_to<OptionKind>;
};

/// Refuses, with one sentence, what is no option and options that contradict each other.
template <class... Options> consteval bool assert_options() {
  (void)(sizeof(Options) + ... + std::size_t{0});  // an option that refuses its own arguments does so here, in few lines
  if constexpr (!(DataParallelOption<Options> && ...)) {
    static_assert(detail::fits_together<Options...>,
                  "the options of DataParallel are types such as SyncEvery<4>, Compress<...>, Sharded<1>: one of these is none");
  } else if constexpr (sizeof...(Options) > 1) {
    constexpr detail::OptionFault fault = detail::first_clash<Options...>();
    if constexpr (fault == detail::OptionFault::twice)
      static_assert(detail::fits_together<Options...>,
                    "two options of DataParallel say the same thing in two ways: leave one of them out");
    else if constexpr (fault == detail::OptionFault::reproducible)
      static_assert(detail::fits_together<Options...>,
                    "Reproducible fixes how gradients are added up: it goes with no other option");
    else if constexpr (fault == detail::OptionFault::sharded_when)
      static_assert(detail::fits_together<Options...>,
                    "Sharded keeps one set of weights for all ranks, which steps without an exchange would pull apart: take "
                    "SyncEvery or Sharded");
    else if constexpr (fault == detail::OptionFault::sharded_exchange)
      static_assert(detail::fits_together<Options...>,
                    "Sharded<2> sums gradients by a reduce-scatter of its own: Compress and Algorithm are of an all-reduce, take "
                    "Sharded<1> with them");
    else if constexpr (fault == detail::OptionFault::own_exchange)
      static_assert(
          detail::fits_together<Options...>,
          "ExchangeBy says how gradients are exchanged: Compress and Algorithm have nothing to change of it, leave them out");
  }
  return true;
}

/// The policy state of Inner with its options around it, the first one outermost.
template <class Inner, class... Options> using WithOptions = typename detail::Wrapped<Inner, Options...>::type;

namespace detail {
/// Whether the options go together. Options that were refused are not asked which exchange they choose.
template <class... Options> consteval bool options_are_sound() {
  if constexpr ((DataParallelOption<Options> && ...)) return first_clash<Options...>() == OptionFault::none;
  else return false;
}
template <bool Sound, class Exchange, class... Options> struct ChosenIf { using type = Exchange; };
template <class Exchange, class... Options> struct ChosenIf<true, Exchange, Options...> : ChosenExchange<Exchange, Options...> {};
}  // namespace detail

/// The exchange that options choose in place of Exchange.
template <class Exchange, class... Options> using ExchangeWith =
    typename detail::ChosenIf<detail::options_are_sound<Options...>(), Exchange, Options...>::type;

}  // namespace skein::inline SKEIN_ABI::parallel
