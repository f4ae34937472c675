// SPDX-License-Identifier: Apache-2.0
// What a wrong option of a layer gets to read: one sentence, with the option and the layer beside it.
#pragma once
#include "memory_requirements.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::check {

template <class T> inline constexpr bool is_no_layer = !(nn::Container<T> || nn::HasDescribe<T> || nn::HasSpec<T>);
template <class Option, class Known> inline constexpr bool is_one_of = false;
template <class Option, class... Known>
inline constexpr bool is_one_of<Option, List<Known...>> = (nn::detail::same_kind<Known, Option> || ...);
template <class Option, class Layer> inline constexpr bool is_given_once = Layer::options::fault != nn::Fault::option_twice;
template <class Option, class Layer> inline constexpr bool is_given = Layer::options::fault != nn::Fault::option_missing;
template <class Option, class... Kinds> inline constexpr bool has_a_value_of =
    nn::detail::in_range<Option> || !is_one_of<Option, List<Kinds...>>;
/// The sentences below say the range of this option.
template <class Option> inline constexpr bool has_a_range =
    is_one_of<Option, List<Kernel<1>, Stride<1>, Dilation<1>, Groups<1>, Padding<0>, OutputPadding<0>, ZeroChannels<0, 0>,
                           Rate<1, 2>, Momentum<1, 10>, Epsilon<1, 1>, Slope<1, 100>>>;

/// The names read as a sentence in the compilers' trails: option<Relu>::of_layer<Linear<16, Relu>, 3>.
template <class Option> struct option {
  template <class Layer, int... Path> struct of_layer {
    static_assert(
        is_no_layer<Option>,
        "a layer is no option of another one, which would not run it: write it behind that layer, Linear<16>, Relu in place "
        "of Linear<16, Relu>");
    static_assert(!is_no_layer<Option> || is_one_of<Option, typename Layer::options::known>,
                  "this layer has no such option: it has those of the List beside this sentence, which has their defaults");
  };
  template <class Layer, int... Path> struct twice_of_layer {
    static_assert(is_given_once<Option, Layer>,
                  "this layer is given an option twice, or two that exclude each other: leave one of them out");
  };
  template <class Layer, int... Path> struct missing_of_layer {
    static_assert(is_given<Option, Layer>, "a convolution needs the side of its window: Conv2d<16, Kernel<3>>");
  };
  template <class Layer, int... Path> struct value_of_layer {
    static_assert(has_a_value_of<Option, Kernel<1>, Stride<1>, Dilation<1>, Groups<1>>,
                  "Kernel<K>, Stride<S>, Dilation<D> and Groups<G> are at least 1");
    static_assert(has_a_value_of<Option, Padding<0>, OutputPadding<0>, ZeroChannels<0, 0>>,
                  "Padding<P>, OutputPadding<P> and ZeroChannels<Before, After> are at least 0");
    static_assert(has_a_value_of<Option, Rate<1, 2>>, "Dropout's Rate<N, D> is a share: N / D is from 0 to 1");
    static_assert(has_a_value_of<Option, Momentum<1, 10>>,
                  "BatchNorm's Momentum<N, D> is the weight of the new statistics: N / D is from 0 to 1");
    static_assert(has_a_value_of<Option, Epsilon<1, 1>>, "Epsilon<N, D> is added to a variance: N / D is above 0");
    static_assert(has_a_value_of<Option, Slope<1, 100>>,
                  "LeakyRelu's Slope<N, D> is 0 or more: the sign of the output tells that of the input");
    static_assert(nn::detail::in_range<Option> || has_a_range<Option>, "the numbers of this option are not within its range");
  };
};

/// A pointer to the type that explains the fault of a layer's options.
template <class L, int... Path> constexpr auto fault_of_options() {
  using Options = typename L::options;
  constexpr nn::detail::OptionFault first = Options::first;
  if constexpr (first.fault == nn::Fault::option_missing) {
    return static_cast<typename option<TypeAt<typename Options::known, first.at>>::template missing_of_layer<L, Path...>*>(
        nullptr);
  } else {
    using Given = option<TypeAt<typename Options::given, first.at>>;
    if constexpr (first.fault == nn::Fault::option_unknown)
      return static_cast<typename Given::template of_layer<L, Path...>*>(nullptr);
    else if constexpr (first.fault == nn::Fault::option_twice)
      return static_cast<typename Given::template twice_of_layer<L, Path...>*>(nullptr);
    else return static_cast<typename Given::template value_of_layer<L, Path...>*>(nullptr);
  }
}

/// That type. Of a layer without such a fault none is to be asked for.
template <class L> using FaultOfOptions = std::remove_pointer_t<decltype(fault_of_options<L>())>;

}  // namespace skein::inline SKEIN_ABI::check
