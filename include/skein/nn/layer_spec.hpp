// SPDX-License-Identifier: Apache-2.0
// What a layer of tensor expressions says of itself: what goes in and out (Edge), its parameters by name, and what backward
// reads. One constexpr value, a pure function of the input; nn/expression_layer.hpp runs the layer.
//
//     static constexpr sk::LayerSpec describe(sk::Edge in) {
//       return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
//     }
#pragma once
#include <concepts>
#include <initializer_list>
#include <string_view>
#include <tuple>

#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The input or output of a layer: the extents of one sample, at most four. `{3, 4}` is an edge of 3 x 4 numbers.
struct Edge : Extents {
  constexpr Edge() = default;
  constexpr Edge(const Extents& e) : Extents(e) {}
  template <std::integral... E>
  requires(sizeof...(E) >= 1 && sizeof...(E) <= 4) constexpr Edge(E... e) : Extents{sizeof...(E), {static_cast<int>(e)...}} {}
};

/// What backward reads beside the gradient of the output; the library keeps nothing else.
enum class Reads { nothing = 0, x = 1, y = 2, x_and_y = 3 };
constexpr bool operator&(Reads a, Reads b) { return (static_cast<int>(a) & static_cast<int>(b)) != 0; }

/// A parameter of a layer: a trained array.
struct ParameterSpec {
  std::string_view name{};
  Edge extents{};
  Init init = Init::fan_in_uniform;
  long fan_in = 1, fan_out = 1;
  bool decay = true;  ///< whether weight decay applies
};

/// Up to as many parameters as a LayerInfo has room for.
struct ParameterList {
  static constexpr int most = static_cast<int>(std::tuple_size_v<decltype(LayerInfo::parameters)>);
  ParameterSpec list[most] = {};
  int count = 0;

  constexpr ParameterList() = default;
  constexpr ParameterList(std::initializer_list<ParameterSpec> all) {
    for (const ParameterSpec& one : all) {
      if (count < most) list[count] = one;
      ++count;
    }
  }
  /// Its place; -1 where there is none of the name.
  constexpr int find(std::string_view name) const {
    for (int i = 0; i < count && i < most; ++i)
      if (list[i].name == name) return i;
    return -1;
  }
};

/// What describe() returns: the output, the parameters, and what backward reads, for one input.
struct LayerSpec {
  Edge output{};
  ParameterList parameters{};
  Reads backward_reads = Reads::nothing;
  long flops = 0;       ///< of forward, for one sample; 0: the number of output values
  int tokens = 0;       ///< not 0: the input is tokens, integers below this number
  bool accepts = true;  ///< false: this input is refused

  /// What the rest of the library knows of a layer.
  constexpr LayerInfo info() const {
    LayerInfo i{.output = output,
                .flops = flops > 0 ? flops : output.count(),
                .saves_input = backward_reads & Reads::x,
                .saves_output = backward_reads & Reads::y,
                .tokens = tokens};
    for (int p = 0; p < parameters.count && p < ParameterList::most; ++p) {
      const ParameterSpec& from = parameters.list[p];
      i.parameters[static_cast<std::size_t>(p)] = {from.name, from.extents, from.init, from.fan_in, from.fan_out, from.decay};
      if (from.name.empty()) i.fault = Fault::parameter_names;
    }
    if (parameters.count > ParameterList::most) i.fault = Fault::too_many_parameters;
    if (!accepts) i.fault = Fault::own;
    return i;
  }
};

namespace detail {
/// The characters of a name, as a template argument. Of functions of the host alone: no kernel gets one.
template <std::size_t N> struct NameText {
  char text[N];
  constexpr NameText(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};
/// "scale"_p
template <NameText Name> struct ParameterName {
  static constexpr bool is_of_a_parameter = true;
  static constexpr std::string_view name = Name.view();
};
template <class T> inline constexpr bool is_a_name = requires { requires T::is_of_a_parameter; };

/// Stands for a frame where it is asked whether a layer has forward(auto& f): bodies are not looked into.
struct AnyFrame {};
}  // namespace detail

/// A layer of expressions: it describes itself by a LayerSpec.
template <class L> concept HasSpec = requires(Edge in) {
  { L::describe(in) } -> std::same_as<LayerSpec>;
};
/// It has static void forward(auto& f); likewise backward.
template <class L> concept HasExpressionForward = requires(detail::AnyFrame& f) { L::forward(f); };
template <class L> concept HasExpressionBackward = requires(detail::AnyFrame& f) { L::backward(f); };

template <class L> inline constexpr bool has_forward = HasSpec<L> ? HasExpressionForward<L> : HasForward<L>;
template <class L> inline constexpr bool has_backward = HasSpec<L> ? HasExpressionBackward<L> : HasBackward<L>;

/// A fault of the options that a layer was given.
template <class L> constexpr Fault option_fault_of() {
  if constexpr (HasOptions<L>) return L::options::fault;
  else return Fault::none;
}
namespace detail {
/// describe() is a constant of this input: it is constexpr, and throws nothing.
template <class L, int... E> concept DescribesAtCompileTime = requires {
  typename std::bool_constant<(L::describe(Edge{E...}), true)>;
};
/// Some input is enough: a layer may divide by 0 for one that it never gets.
template <class L> concept HasConstantDescribe = DescribesAtCompileTime<L, 16, 16, 16> || DescribesAtCompileTime<L, 12> ||
    DescribesAtCompileTime<L, 7, 9> || DescribesAtCompileTime<L, 16, 16, 16, 16>;
template <class L> constexpr LayerInfo described(Extents in) {
  if constexpr (!HasSpec<L>) return L::describe(in);
  else if constexpr (HasConstantDescribe<L>) return L::describe(Edge(in)).info();
  else return {.output = in, .fault = Fault::not_constexpr};
}
constexpr LayerInfo with_fault(LayerInfo info, Fault fault) {
  info.fault = fault;
  return info;
}
}  // namespace detail
/// What a leaf says of itself, by either kind of describe(); a fault of its options comes first.
template <class L> constexpr LayerInfo info_of(Extents in) {
  if constexpr (option_fault_of<L>() == Fault::none) return detail::described<L>(in);
  else return detail::with_fault(detail::described<L>(in), option_fault_of<L>());
}

}  // namespace skein::inline SKEIN_ABI::nn

namespace skein::inline SKEIN_ABI {
using nn::Edge;
using nn::LayerSpec;
using nn::Reads;

inline namespace literals {
/// "scale"_p names a parameter of a layer: f.parameter("scale"_p).
template <nn::detail::NameText Name> constexpr nn::detail::ParameterName<Name> operator""_p() { return {}; }
}  // namespace literals
}  // namespace skein::inline SKEIN_ABI
