// SPDX-License-Identifier: Apache-2.0
// What an executor remembers of some samples from forward to backward: edges between layers and their gradients in the type in
// which activations are stored, the layers' own blocks in the parameters' type. An executor has one for the rank, one a worker
// (depth-first), or one a micro-batch that is in flight (a stage).
#pragma once
#include <span>
#include <type_traits>

#include "../device/memory.hpp"
#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The numbers of one executor that its activations are made of.
struct ActivationSizes {
  MemoryRequirements network{};
  long backward_scratch = 0;  ///< scalars a sample of blocks that pass from a layer's backward to itself
  long input_pitch = 0, output_pitch = 0;
  bool stacked = false;  ///< saved_for_backward and scratch are one: MemoryRequirements::stacked
  /// Not 0: of a pipeline's stage, whose input has a gradient too. Behind both gradients there is room for so many activations.
  long tail_room = 0;
};

/// The output of a network and its gradient for the samples of a call, in the loss's scalar, whatever type is stored between
/// layers.
template <class Scalar, class Activation, class Device> class Activations {
  static constexpr bool mixed = !std::same_as<Scalar, Activation>;
  struct Wide {  // where the loss and the network speak different types
    Wide(std::size_t n, Device where) : output(n, where), gradient(n, where) {}
    Arena<Activation, Device> output;
    Arena<Scalar, Device> gradient;
  };
  struct Same {
    Same(std::size_t, Device) {}
    static constexpr std::span<Scalar> output{}, gradient{};
  };
  static constexpr std::size_t count(long scalars) { return static_cast<std::size_t>(scalars); }

 public:
  /// For n samples.
  Activations(const ActivationSizes& s, long n, Device where)
      : kept_activations(count((s.network.kept_activations + s.network.again.activations) * n), where),
        scratch(count(((s.stacked ? s.network.stacked : s.network.scratch) + s.network.whole_gradients) * n), where),
        input(count(whole_line(s.input_pitch) * n), where), gradient(count(whole_line(s.output_pitch) * n + s.tail_room), where),
        input_gradient(s.tail_room > 0 ? count(whole_line(s.input_pitch) * n + s.tail_room) : 0, where),
        saved_for_backward(
            count(((s.stacked ? 0 : s.network.saved_for_backward) + s.backward_scratch + s.network.again.saved) * n), where),
        batch_statistics(count(s.network.batch_statistics), where),
        saved_bytes(count((s.network.saved_bytes + s.network.again.bytes) * n), where), wide(count(s.output_pitch * n), where) {}

  std::size_t bytes() const {
    const std::size_t edges = input.size() + gradient.size() + input_gradient.size() + wide.output.size();
    return (kept_activations.size() + scratch.size() + edges) * sizeof(Activation) +
           (saved_for_backward.size() + batch_statistics.size() + wide.gradient.size()) * sizeof(Scalar) + saved_bytes.size();
  }

  Arena<Activation, Device> kept_activations, scratch, input, gradient, input_gradient;
  Arena<Scalar, Device> saved_for_backward, batch_statistics;
  Arena<std::byte, Device> saved_bytes;
  [[no_unique_address]] std::conditional_t<mixed, Wide, Same> wide;
};

}  // namespace skein::inline SKEIN_ABI::nn
