// SPDX-License-Identifier: Apache-2.0
// Option tags of layers (Kernel<5>, Padding<2>, NoBias, ...), the list in which a layer declares those that it knows, and the
// lookup of one. Integers and ratios only: they travel into kernels' template arguments.
//
//     template <int N, class... Options> struct Scaled {
//       using options = detail::LayerOptions<List<Stride<1>, NoBias>, Options...>;  // those that it knows, with defaults
//       static constexpr int stride = detail::option<Stride>(options{});
//       static constexpr bool has_bias = !detail::has_option<NoBias>(options{});
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../core/hash.hpp"
#include "layer.hpp"

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
/// Not a number where the denominator is 0.
constexpr double ratio(int numerator, int denominator) {
  return denominator == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(numerator) / denominator;
}
constexpr bool is_share(double value) { return value >= 0 && value <= 1; }

/// Is the value of an option within its range.
template <class Option> inline constexpr bool in_range = true;
template <int K> inline constexpr bool in_range<Kernel<K>> = K > 0;
template <int S> inline constexpr bool in_range<Stride<S>> = S > 0;
template <int D> inline constexpr bool in_range<Dilation<D>> = D > 0;
template <int G> inline constexpr bool in_range<Groups<G>> = G > 0;
template <int P> inline constexpr bool in_range<Padding<P>> = P >= 0;
template <int P> inline constexpr bool in_range<OutputPadding<P>> = P >= 0;
template <int B, int A> inline constexpr bool in_range<ZeroChannels<B, A>> = B >= 0 && A >= 0;
template <int N, int D> inline constexpr bool in_range<Rate<N, D>> = is_share(ratio(N, D));
template <int N, int D> inline constexpr bool in_range<Momentum<N, D>> = is_share(ratio(N, D));
template <int N, int D> inline constexpr bool in_range<Epsilon<N, D>> = ratio(N, D) > 0;
template <int N, int D> inline constexpr bool in_range<Slope<N, D>> = ratio(N, D) >= 0;

/// In a list of known options: one of these. The first is the default.
template <class... Choices> struct OneOf {};
/// In a list of known options: one that must be given; its value here serves until the fault is said.
template <class Option> struct Required {};

/// Are two options of one kind, such as Kernel<3> and Kernel<5>; of a list of known options the first.
template <class Known, class Option> inline constexpr bool same_kind = std::is_same_v<Known, Option>;
template <template <int> class Tag, int A, int B> inline constexpr bool same_kind<Tag<A>, Tag<B>> = true;
template <template <int, int> class Tag, int A, int B, int C, int D> inline constexpr bool same_kind<Tag<A, B>, Tag<C, D>> = true;
template <template <Init> class Tag, Init A, Init B> inline constexpr bool same_kind<Tag<A>, Tag<B>> = true;
template <class... Choices, class Option>
inline constexpr bool same_kind<OneOf<Choices...>, Option> = (std::is_same_v<Choices, Option> || ...);
template <class Known, class Option> inline constexpr bool same_kind<Required<Known>, Option> = same_kind<Known, Option>;

template <class Known> inline constexpr bool is_required = false;
template <class Known> inline constexpr bool is_required<Required<Known>> = true;

/// The first option of a kind whose value is in range; behind those that were given stand the defaults.
template <template <int> class Tag, class... Options> struct Pick;
template <template <int> class Tag, int V, class... Rest>
requires(in_range<Tag<V>>) struct Pick<Tag, Tag<V>, Rest...> {
  static constexpr int value = V;
};
template <template <int> class Tag, int V, class... Rest> struct Pick<Tag, Required<Tag<V>>, Rest...> : Pick<Tag, Tag<V>> {};
template <template <int> class Tag, class First, class... Rest> struct Pick<Tag, First, Rest...> : Pick<Tag, Rest...> {};
template <template <int> class Tag> struct Pick<Tag> { static constexpr int value = 1; };  // refused elsewhere

/// The two numbers of an option.
struct OptionPair {
  int first = 0, second = 0;
  constexpr double ratio() const { return detail::ratio(first, second); }
};
template <template <int, int> class Tag, class... Options> struct PickPair;
template <template <int, int> class Tag, int A, int B, class... Rest>
requires(in_range<Tag<A, B>>) struct PickPair<Tag, Tag<A, B>, Rest...> {
  static constexpr OptionPair value{A, B};
};
template <template <int, int> class Tag, class First, class... Rest> struct PickPair<Tag, First, Rest...>
    : PickPair<Tag, Rest...> {};
template <template <int, int> class Tag> struct PickPair<Tag> {
  static constexpr OptionPair value{};
};  // its layer's own default

template <template <Init> class Tag, class... Options> struct PickInit;
template <template <Init> class Tag, Init V, class... Rest> struct PickInit<Tag, Tag<V>, Rest...> {
  static constexpr Init value = V;
};
template <template <Init> class Tag, class First, class... Rest> struct PickInit<Tag, First, Rest...> : PickInit<Tag, Rest...> {};

/// The numbers of an option; one without is {1, -1}.
template <class Option> inline constexpr OptionPair numbers_of{1, -1};
template <template <int> class Tag, int V> inline constexpr OptionPair numbers_of<Tag<V>>{V, 0};
template <template <int, int> class Tag, int A, int B> inline constexpr OptionPair numbers_of<Tag<A, B>>{A, B};
template <template <Init> class Tag, Init V> inline constexpr OptionPair numbers_of<Tag<V>>{static_cast<int>(V), 0};
/// The numbers of a known option that was not given, and of one that was: where there is a choice, its place among them.
template <class Known> inline constexpr OptionPair default_of = numbers_of<Known>.second < 0 ? OptionPair{} : numbers_of<Known>;
template <class Known, class Option> inline constexpr OptionPair given_of = numbers_of<Option>;
template <class Option, class... Choices> constexpr int choice_of() {
  constexpr bool same[] = {std::is_same_v<Choices, Option>..., true};
  int i = 0;
  while (!same[i]) ++i;
  return i;
}
template <class... Choices, class Option>
inline constexpr OptionPair given_of<OneOf<Choices...>, Option>{choice_of<Option, Choices...>(), 0};

/// A fault of a layer's options: at which of those that it was given; of one that is missing, at which of those that it knows.
struct OptionFault {
  Fault fault = Fault::none;
  int at = 0;
};

/// The options of a layer: those that it knows, with their defaults, and those that it was given.
template <class Known, class... Given> struct LayerOptions;
template <class... Known, class... Given> struct LayerOptions<List<Known...>, Given...> {
  using known = List<Known...>;
  using given = List<Given...>;

  /// The place of an option's kind among the known ones; -1: it is not known.
  template <class Option> static constexpr int place() {
    constexpr bool same[] = {same_kind<Known, Option>..., false};
    for (int i = 0; i < known::size; ++i)
      if (same[i]) return i;
    return -1;
  }
  static constexpr OptionFault find() {
    constexpr int places[] = {place<Given>()..., -1};
    constexpr bool sound[] = {in_range<Given>..., true}, required[] = {is_required<Known>..., false};
    bool found[known::size + 1] = {};
    for (int i = 0; i < given::size; ++i) {
      if (places[i] < 0) return {Fault::option_unknown, i};
      if (found[places[i]]) return {Fault::option_twice, i};
      if (!sound[i]) return {Fault::option_out_of_range, i};
      found[places[i]] = true;
    }
    for (int i = 0; i < known::size; ++i)
      if (required[i] && !found[i]) return {Fault::option_missing, i};
    return {};
  }
  static constexpr OptionFault first = find();
  static constexpr Fault fault = first.fault;

  /// A hash of the values of all, given or not, by which ranks compare them.
  static constexpr std::uint64_t hash() {
    Fnv1a f;
    for (const OptionPair& p : {value<Known>()..., OptionPair{}})
      f.add(static_cast<std::uint64_t>(p.first)).add(static_cast<std::uint64_t>(p.second));
    return f.value();
  }

 private:
  template <class Option> static constexpr OptionPair value() {
    constexpr bool same[] = {same_kind<Option, Given>..., true};
    constexpr OptionPair values[] = {given_of<Option, Given>..., default_of<Option>};
    int i = 0;
    while (!same[i]) ++i;
    return values[i];
  }
};

/// Those of a layer; of one without options none.
template <class L> struct OptionsOf { using type = LayerOptions<List<>>; };
template <HasOptions L> struct OptionsOf<L> { using type = typename L::options; };

/// What a layer was given for a kind of option, else its default. It must be among those that the layer knows.
template <template <int> class Tag, class... Known, class... Given> constexpr int option(LayerOptions<List<Known...>, Given...>) {
  static_assert((same_kind<Known, Tag<0>> || ...), "a layer reads an option that it does not declare");
  return Pick<Tag, Given..., Known...>::value;
}
template <template <int, int> class Tag, class... Known, class... Given>
constexpr OptionPair option(LayerOptions<List<Known...>, Given...>) {
  static_assert((same_kind<Known, Tag<0, 0>> || ...), "a layer reads an option that it does not declare");
  return PickPair<Tag, Given..., Known...>::value;
}
template <template <Init> class Tag, class... Known, class... Given>
constexpr Init option(LayerOptions<List<Known...>, Given...>) {
  return PickInit<Tag, Given..., Known...>::value;
}
/// Was a layer given an option that has no value.
template <class Option, class... Known, class... Given> constexpr bool has_option(LayerOptions<List<Known...>, Given...>) {
  static_assert((same_kind<Known, Option> || ...), "a layer reads an option that it does not declare");
  return (std::is_same_v<Option, Given> || ...);
}
}  // namespace nn::detail

}  // namespace skein::inline SKEIN_ABI
