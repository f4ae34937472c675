// SPDX-License-Identifier: Apache-2.0
// Type rewriting: Fused<Network, Device> is the network with every run of neighbours for which Fusion<Device, ...> names a
// composite replaced by it, longest first, inside each container; a single layer too, where a device runs it in another form.
// Execution changes; names, tables and files do not.
#pragma once
#include <type_traits>

#include "concat.hpp"
#include "fusion.hpp"
#include "recompute.hpp"
#include "repeat.hpp"
#include "residual.hpp"
#include "sequential.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A composite together with the user's layers that it stands for.
template <class Composite, class... Layers> struct FusedLayer : Composite {
  static constexpr int layer_count = sizeof...(Layers);
  using composite = Composite;
  using layers = List<Layers...>;
};

namespace detail {
/// L as Device runs it: itself on the host, and where no kernel wants anything.
template <class L, class Device> struct Placed { using type = L; };
template <HasNeeds L, class Device>
requires(!on_host<Device>) struct Placed<L, Device> {
  using type = OnDevice<L, Device>;
};

template <class L, class Device> struct Rewrite;  // of one layer or container, or of a composite that contains layers

template <class Done, class Device, class... Rest> struct FuseList;
template <class... Done, class Device> struct FuseList<List<Done...>, Device> { using type = Sequential<Done...>; };

template <class Device, class... Ls> inline constexpr bool fuses = !std::is_void_v<typename Fusion<Device, Ls...>::type>;
template <class Device, class... Ls> using Composite = typename Rewrite<typename Fusion<Device, Ls...>::type, Device>::type;

template <class... Done, class Device, class A> struct FuseList<List<Done...>, Device, A> {
  using type = Sequential<Done..., typename Rewrite<A, Device>::type>;
};
template <class... Done, class Device, class A, class B> struct FuseList<List<Done...>, Device, A, B> {
  static constexpr auto next() {
    if constexpr (fuses<Device, A, B>) return FuseList<List<Done..., FusedLayer<Composite<Device, A, B>, A, B>>, Device>{};
    else return FuseList<List<Done..., typename Rewrite<A, Device>::type>, Device, B>{};
  }
  using type = typename decltype(next())::type;
};
template <class... Done, class Device, class A, class B, class C, class... Rest>
struct FuseList<List<Done...>, Device, A, B, C, Rest...> {
  static constexpr auto next() {
    if constexpr (fuses<Device, A, B, C>)
      return FuseList<List<Done..., FusedLayer<Composite<Device, A, B, C>, A, B, C>>, Device, Rest...>{};
    else if constexpr (fuses<Device, A, B>)
      return FuseList<List<Done..., FusedLayer<Composite<Device, A, B>, A, B>>, Device, C, Rest...>{};
    else return FuseList<List<Done..., typename Rewrite<A, Device>::type>, Device, B, C, Rest...>{};
  }
  using type = typename decltype(next())::type;
};

template <class Children, class Device> struct FuseChildren;
template <class... Ls, class Device> struct FuseChildren<List<Ls...>, Device> : FuseList<List<>, Device, Ls...> {};

template <class Branches, class Device> struct FuseBranches;
template <class... Ls, class Device> struct FuseBranches<List<Ls...>, Device> {
  using type = Concat<typename Rewrite<Ls, Device>::type...>;
};

template <class L, class Device> struct Rewrite {
  static constexpr auto choose() {
    if constexpr (SequentialLike<L>) return FuseChildren<typename L::children, Device>{};
    else if constexpr (ResidualLike<L>)
      return std::type_identity<
          Residual<typename Rewrite<typename L::body, Device>::type, typename Rewrite<typename L::shortcut, Device>::type>>{};
    else if constexpr (ConcatLike<L>) return FuseBranches<typename L::branches, Device>{};
    else if constexpr (RepeatLike<L>)
      return std::type_identity<Repeat<L::repetitions, typename Rewrite<typename L::block, Device>::type>>{};
    else if constexpr (RecomputeLike<L>)
      return std::type_identity<Recompute<typename Rewrite<typename L::recomputed_block, Device>::type>>{};
    else if constexpr (GraphLike<L> || RectifiedResidualLike<L>)
      return std::type_identity<typename L::template rewritten<Device>>{};
    else if constexpr (fuses<Device, L>)
      return std::type_identity<FusedLayer<Composite<Device, L>, L>>{};  // another form of one layer
    else return Placed<L, Device>{};
  }
  using type = typename decltype(choose())::type;
};
}  // namespace detail

template <class Network, class Device> using Fused = typename detail::Rewrite<Network, Device>::type;

namespace detail {
/// Fused of a network that is sound. One that was refused is not looked into again: each further error would hide the sentence.
template <class Network, class Device, bool Sound> struct ExecutedNetwork { using type = Fused<Network, Device>; };
template <class Network, class Device> struct ExecutedNetwork<Network, Device, false> { using type = Identity; };
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
