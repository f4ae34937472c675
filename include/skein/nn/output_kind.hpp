// SPDX-License-Identifier: Apache-2.0
// What the last layer of a network gives and what a loss takes: a Softmax before a loss that has one inside trains badly without
// a word, so that a trainer refuses the pair.
#pragma once
#include <concepts>

#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Outputs as a loss reads them. `any`: a layer does not say, a loss takes whatever comes.
enum class OutputKind { any, logits, probabilities, log_probabilities };

/// A layer that says what its outputs are: static constexpr OutputKind gives.
template <class L> concept SaysWhatItGives = requires {
  { L::gives } -> std::convertible_to<OutputKind>;
};
/// A loss that says what outputs it takes: static constexpr OutputKind takes.
template <class L> concept SaysWhatItTakes = requires {
  { L::takes } -> std::convertible_to<OutputKind>;
};

/// What the outputs of a network are, by its last layer.
template <class Network> consteval OutputKind output_kind_of() {
  if constexpr (SequentialLike<Network>) return output_kind_of<TypeAt<typename Network::children, Network::size - 1>>();
  else if constexpr (SaysWhatItGives<Network>) return Network::gives;
  else return OutputKind::any;
}
/// What outputs a loss takes.
template <class Loss> consteval OutputKind kind_taken_by() {
  if constexpr (SaysWhatItTakes<Loss>) return Loss::takes;
  else return OutputKind::any;
}

/// Is that loss of the outputs of that network the one that was meant. (Logits and log-probabilities are the same to a loss of
/// logits.)
template <class Network, class Loss> consteval bool fits_loss() {
  return output_kind_of<Network>() != OutputKind::probabilities || kind_taken_by<Loss>() == OutputKind::any ||
         kind_taken_by<Loss>() == OutputKind::probabilities;
}

}  // namespace skein::inline SKEIN_ABI::nn
