// SPDX-License-Identifier: Apache-2.0
// The stages of a pipeline as types: what follows what, which layers of the whole network a stage has, and the split of a network
// into stages of equal work. The whole is the Sequential of all the stages' layers: names, tables and initial values are that
// one's.
#pragma once
#include <array>

#include "../../nn/fused_network.hpp"
#include "../../nn/program.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Stages in their order, where a list of types is wanted: Pipeline<Stages<A, B>> is Pipeline<A, B>.
template <class... Ss> struct Stages {};

namespace detail {
template <class S> struct ChildrenOf { using type = List<S>; };
template <nn::SequentialLike S> struct ChildrenOf<S> { using type = typename S::children; };

template <class... Lists> struct Joined;
template <class... Ls> struct Joined<List<Ls...>> { using type = nn::Sequential<Ls...>; };
template <class... As, class... Bs, class... Rest> struct Joined<List<As...>, List<Bs...>, Rest...>
    : Joined<List<As..., Bs...>, Rest...> {};

template <class L> struct LayersOf { using type = List<L>; };  // of a child of the fused network: the user's
template <class L>
requires requires { typename L::layers; }
struct LayersOf<L> {
  using type = typename L::layers;
};

template <class Children> struct Costs;
template <class... Ls> struct Costs<List<Ls...>> {
  static constexpr int size = sizeof...(Ls);
  std::array<long, sizeof...(Ls)> flops{}, crossing{};  // of each child, forward and backward; scalars a sample behind it

  static constexpr Costs at(Extents in) {
    Costs c;
    std::size_t n = 0;
    bool wanted = false;  // the gradient of a child's input: not before the first parameters, nor of them
    auto one = [&](const nn::MemoryRequirements& s) {
      c.flops[n] = s.flops * (wanted ? 3 : s.stored > 0 ? 2 : 1);
      wanted = wanted || s.stored > 0;
      c.crossing[n++] = s.output.count();
      in = s.output;
    };
    const int each[] = {(one(nn::analyze<Ls>(in)), 0)...};
    (void)each;
    return c;
  }
};

/// The first child of each stage (and the end), so that the most costly stage costs least, and then that least travels.
template <int N, class C> constexpr std::array<int, static_cast<std::size_t>(N) + 1> cut(const C& c) {
  struct Best {
    bool there = false;
    long most = 0, crossing = 0;
    int from = 0;
  };
  constexpr int n = C::size;
  std::array<std::array<Best, static_cast<std::size_t>(n) + 1>, static_cast<std::size_t>(N) + 1> best{};
  best[0][0].there = true;
  for (int stage = 1; stage <= N; ++stage)
    for (int end = stage; end <= n; ++end) {
      Best& b = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(end)];
      long cost = 0;
      for (int from = end - 1; from >= stage - 1; --from) {
        cost += c.flops[static_cast<std::size_t>(from)];
        const Best& before = best[static_cast<std::size_t>(stage) - 1][static_cast<std::size_t>(from)];
        if (!before.there) continue;
        const long most = cost > before.most ? cost : before.most,
                   crossing = before.crossing + (end < n ? c.crossing[static_cast<std::size_t>(end) - 1] : 0);
        if (b.there && (most > b.most || (most == b.most && crossing >= b.crossing))) continue;
        b = {true, most, crossing, from};
      }
    }
  std::array<int, static_cast<std::size_t>(N) + 1> cuts{};
  for (int stage = N, end = n; stage >= 0; --stage) {
    cuts[static_cast<std::size_t>(stage)] = end;
    end = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(end)].from;
  }
  return cuts;
}

template <class All, int Begin, class Indices> struct SliceOf;
template <class All, int Begin, int... I> struct SliceOf<All, Begin, std::integer_sequence<int, I...>> {
  using type = typename Joined<typename LayersOf<TypeAt<All, Begin + I>>::type...>::type;
};

template <class Network, class Input, int N> struct Balanced {
  static_assert(nn::SequentialLike<Network>, "balanced_stages splits a Sequential between its layers");
  using ExecutedLayers = typename nn::Fused<Network, Cpu>::children;  // a cut within what runs as one would undo that
  static constexpr auto costs = Costs<ExecutedLayers>::at(Input::extents);
  static_assert(N >= 1 && N <= costs.size,
                "balanced_stages<Network, Input, N>: the network has fewer layers than stages are asked for (layers that are "
                "fused count as one)");
  static constexpr auto cuts = cut<(N >= 1 && N <= costs.size ? N : 1)>(costs);

  template <int... I> static auto make(std::integer_sequence<int, I...>)
      -> Stages<typename SliceOf<ExecutedLayers, cuts[I], std::make_integer_sequence<int, cuts[I + 1] - cuts[I]>>::type...>;
  using type = decltype(make(std::make_integer_sequence<int, static_cast<int>(cuts.size()) - 1>{}));
};
}  // namespace detail

/// The network of all stages.
template <class... Ss> using whole_network = typename detail::Joined<typename detail::ChildrenOf<Ss>::type...>::type;

/// N stages of a Sequential, cut at compile time where the floating-point work of the most costly stage, forward and backward, is
/// least: Stages<S0, ... SN-1>.
template <class Network, class Input, int N> using balanced_stages = typename detail::Balanced<Network, Input, N>::type;

}  // namespace skein::inline SKEIN_ABI::parallel
