// SPDX-License-Identifier: Apache-2.0
// Option tags of layers (Kernel<5>, Padding<2>, NoBias, ...) and the lookup of one in a list. Integers and ratios only:
// they travel into kernels' template arguments.
#pragma once
#include <concepts>

#include "../core/config.hpp"
#include "initializers.hpp"

namespace skein::inline SKEIN_ABI {

template <int K> struct Kernel {};                             ///< side of a square window
template <int S> struct Stride {};                             ///< step of a window; pooling's default is its kernel
template <int P> struct Padding {};                            ///< zeros (pooling: nothing) on each side
template <int P> struct OutputPadding {};                      ///< transposed convolution: rows and columns added at the end
template <int D> struct Dilation {};                           ///< distance between the taps of a kernel
template <int G> struct Groups {};                             ///< channel groups of a convolution
struct NoBias {};                                              ///< leave the bias out
template <int Before, int After> struct ZeroChannels {};       ///< channels of zeros before and behind those of an image
template <int Numerator, int Denominator> struct Rate {};      ///< dropout: the share that is set to zero
template <int Numerator, int Denominator> struct Slope {};     ///< leaky ReLU: slope below zero
template <int Numerator, int Denominator> struct Epsilon {};   ///< normalisation: added to the variance
template <int Numerator, int Denominator> struct Momentum {};  ///< batch normalisation: weight of the new statistics
template <nn::Init Weight> struct WeightInit {};               ///< initializer of the weight
template <nn::Init Bias> struct BiasInit {};                   ///< initializer of the bias

namespace nn::detail {
/// The value of Tag<...> among Options, else Default.
template <template <int> class Tag, int Default, class... Options> struct Pick { static constexpr int value = Default; };
template <template <int> class Tag, int Default, int V, class... Rest> struct Pick<Tag, Default, Tag<V>, Rest...> {
  static constexpr int value = V;
};
template <template <int> class Tag, int Default, class First, class... Rest> struct Pick<Tag, Default, First, Rest...>
    : Pick<Tag, Default, Rest...> {};

/// The same for ratios, as a double.
template <template <int, int> class Tag, int N, int D, class... Options> struct PickRatio {
  static constexpr double value = static_cast<double>(N) / D;
};
template <template <int, int> class Tag, int N, int D, int A, int B, class... Rest>
struct PickRatio<Tag, N, D, Tag<A, B>, Rest...> {
  static constexpr double value = static_cast<double>(A) / B;
};
template <template <int, int> class Tag, int N, int D, class First, class... Rest> struct PickRatio<Tag, N, D, First, Rest...>
    : PickRatio<Tag, N, D, Rest...> {};

/// The same for initializers.
template <template <Init> class Tag, Init Default, class... Options> struct PickInit { static constexpr Init value = Default; };
template <template <Init> class Tag, Init Default, Init V, class... Rest> struct PickInit<Tag, Default, Tag<V>, Rest...> {
  static constexpr Init value = V;
};
template <template <Init> class Tag, Init Default, class First, class... Rest> struct PickInit<Tag, Default, First, Rest...>
    : PickInit<Tag, Default, Rest...> {};

template <class Option, class... Options> inline constexpr bool has_option = (std::same_as<Option, Options> || ...);
}  // namespace nn::detail

}  // namespace skein::inline SKEIN_ABI
