// SPDX-License-Identifier: Apache-2.0
// What the last layer of a network gives and what a loss takes: a Softmax before a loss that has one inside trains badly without
// a word, a Relu before it too, and logits before a loss of log-probabilities not at all, so that a trainer refuses the pair.
#pragma once
#include <concepts>
#include <type_traits>

#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Outputs as a loss reads them. `any`: a layer does not say, a loss takes whatever comes. `rectified`: none is below 0, as
/// behind a Relu.
enum class OutputKind { any, logits, probabilities, log_probabilities, rectified };

/// A layer that says what its outputs are: static constexpr OutputKind gives.
template <class L> concept SaysWhatItGives = requires {
  { L::gives } -> std::convertible_to<OutputKind>;
};
/// A loss that says what outputs it takes: static constexpr OutputKind takes.
template <class L> concept SaysWhatItTakes = requires {
  { L::takes } -> std::convertible_to<OutputKind>;
};

/// A layer whose outputs are what its inputs are: static constexpr bool keeps_output_kind = true. Dropout is one.
template <class L> concept KeepsOutputKind = requires { requires L::keeps_output_kind; };

namespace detail {
/// Stands for the layer behind an edge of a Graph that no layer writes, and behind several Outputs.
struct NoLayer {};

/// The layer of a Graph that writes the edge Name.
template <class Name, class Items> struct WriterOf;
template <class Name, class... Items> struct WriterOf<Name, List<Items...>> {
  static constexpr int at = [] {
    constexpr bool writes[] = {(std::same_as<typename Items::writes, Name> && !std::is_void_v<typename Items::layer>)...};
    for (int i = 0; i < static_cast<int>(sizeof...(Items)); ++i)
      if (writes[i]) return i;
    return -1;
  }();
  static constexpr auto find() {
    if constexpr (at < 0) return std::type_identity<NoLayer>{};
    else return std::type_identity<typename TypeAt<List<Items...>, at>::layer>{};
  }
  using type = typename decltype(find())::type;
};
/// The layer whose output is that of a Graph with one Output.
template <class Items> struct LayerAtOutput;
template <class... Items> struct LayerAtOutput<List<Items...>> {
  static constexpr int outputs = (0 + ... + int{std::is_void_v<typename Items::writes>});
  static constexpr auto find() {
    constexpr bool ends[] = {std::is_void_v<typename Items::writes>...};
    constexpr int at = [&] {
      for (int i = 0; i < static_cast<int>(sizeof...(Items)); ++i)
        if (ends[i]) return i;
      return 0;
    }();
    if constexpr (outputs != 1) return std::type_identity<NoLayer>{};
    else return WriterOf<TypeAt<typename TypeAt<List<Items...>, at>::reads, 0>, List<Items...>>{};
  }
  using type = typename decltype(find())::type;
};

template <class Network> consteval bool keeps_kind();
/// Do all layers of a network hand the kind of its input on.
template <class... Layers> consteval bool all_keep_kind(List<Layers...>) { return (keeps_kind<Layers>() && ...); }
template <class Network> consteval bool keeps_kind() {
  if constexpr (SequentialLike<Network>) return all_keep_kind(typename Network::children{});
  else return KeepsOutputKind<Network>;
}
/// The number of the last layer of a Sequential that does not; 0 where all do.
template <class... Layers> consteval int last_to_change_kind(List<Layers...>) {
  constexpr bool keeps[] = {keeps_kind<Layers>()...};
  int at = static_cast<int>(sizeof...(Layers)) - 1;
  while (at > 0 && keeps[at]) --at;
  return at;
}
}  // namespace detail

/// What the outputs of a network are, by its last layer that does not hand on what it gets.
template <class Network> consteval OutputKind output_kind_of() {
  if constexpr (SequentialLike<Network>)
    return output_kind_of<TypeAt<typename Network::children, detail::last_to_change_kind(typename Network::children{})>>();
  else if constexpr (RecomputeLike<Network>) return output_kind_of<typename Network::recomputed_block>();
  else if constexpr (GraphLike<Network>) {
    if constexpr (Network::sound) return output_kind_of<typename detail::LayerAtOutput<typename Network::graph_items>::type>();
    else return OutputKind::any;
  } else if constexpr (SaysWhatItGives<Network>) return Network::gives;
  else return OutputKind::any;
}
/// What outputs a loss takes.
template <class Loss> consteval OutputKind kind_taken_by() {
  if constexpr (SaysWhatItTakes<Loss>) return Loss::takes;
  else return OutputKind::any;
}

/// Is that loss of the outputs of that network the one that was meant. (Logits and log-probabilities are the same to a loss of
/// logits, and not to one of log-probabilities.)
template <class Network, class Loss> consteval bool fits_loss() {
  if (kind_taken_by<Loss>() == OutputKind::log_probabilities && output_kind_of<Network>() == OutputKind::logits) return false;
  if (output_kind_of<Network>() == OutputKind::rectified)
    return kind_taken_by<Loss>() != OutputKind::logits && kind_taken_by<Loss>() != OutputKind::log_probabilities;
  return output_kind_of<Network>() != OutputKind::probabilities || kind_taken_by<Loss>() == OutputKind::any ||
         kind_taken_by<Loss>() == OutputKind::probabilities;
}
template <class Network, class Loss> inline constexpr bool outputs_are_what_the_loss_takes = fits_loss<Network, Loss>();

/// Refuses, with one sentence, a loss of other outputs than those of a network, or of the layer at an Output of a Graph.
template <class Network, class Loss> consteval void assert_outputs() {
  if constexpr (output_kind_of<Network>() == OutputKind::rectified)
    static_assert(outputs_are_what_the_loss_takes<Network, Loss>,
                  "the network ends with Relu, so that no output is below 0, and this loss takes logits (or log-probabilities), "
                  "which may be: leave the Relu behind the last layer out");
  else if constexpr (kind_taken_by<Loss>() == OutputKind::logits)
    static_assert(outputs_are_what_the_loss_takes<Network, Loss>,
                  "the network ends with probabilities (Softmax or Sigmoid), and this loss takes logits: it has that function "
                  "inside; leave the last layer out, and apply it to what predict() returns");
  else if constexpr (output_kind_of<Network>() == OutputKind::logits)
    static_assert(outputs_are_what_the_loss_takes<Network, Loss>,
                  "the network ends with logits (Linear or a convolution), and this loss takes log-probabilities: put LogSoftmax "
                  "behind the last layer, or take CrossEntropy, which has it inside");
  else
    static_assert(outputs_are_what_the_loss_takes<Network, Loss>,
                  "the network ends with probabilities, and this loss takes log-probabilities: put LogSoftmax in place of "
                  "Softmax");
}

}  // namespace skein::inline SKEIN_ABI::nn
