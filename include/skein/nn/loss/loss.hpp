// SPDX-License-Identifier: Apache-2.0
// What a loss is: a small value (an aggregate of options, no template) that turns the network's outputs and the targets of
// some samples into sums and, where wanted, the gradient of the outputs. It never divides by the number of samples: the
// library does that, since only it knows how many samples the other workers and ranks have seen.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "../../core/error.hpp"
#include "../../device/device.hpp"
#include "../../ops/step_values.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What a loss compares the outputs with: a class number a sample, or a row of values a sample.
enum class Target { label, vector };

/// The memory of one call: one worker's slice of the batch. Rows are `output_pitch` (`target_pitch`) scalars apart.
template <class Scalar_, class Device_> struct LossCall {
  using Scalar = Scalar_;
  using Device = Device_;
  const Scalar* outputs = nullptr;                  ///< (count, width)
  long output_pitch = 0;
  long width = 0;                                   ///< classes, or values a sample
  const std::int32_t* labels = nullptr;             ///< (count), with Target::label
  const Scalar* targets = nullptr;                  ///< (count, width), with Target::vector
  long target_pitch = 0;
  long count = 0;                                   ///< samples
  Scalar scale = 1;                                 ///< factor of the gradient: 1 / the weight of the whole batch
  Scalar* gradient = nullptr;                       ///< (count, width), pitch and gaps as the outputs; null: not wanted
  long first = 0;                                   ///< number of the first sample, for messages
  const float* table = nullptr;                     ///< the device's copy of the loss's table(); null: the loss reads its own
  double* sums = nullptr;                           ///< not null: loss, weight and hits are added there, and the call returns nothing
  const ops::StepValues* values = nullptr;          ///< not null: the gradient is also multiplied by its loss_scale
};

/// What a call returns. The mean loss is the sum of `loss` over the sum of `weight`, over all workers and ranks.
struct LossSums {
  double loss = 0;                                  ///< sum of the weighted losses of the samples
  double weight = 0;                                ///< what they contribute to the divisor
  double correct = 0;                               ///< samples whose greatest output is the label (Target::label)

  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    weight += o.weight;
    correct += o.correct;
    return *this;
  }
  double mean() const { return weight > 0 ? loss / weight : 0; }
};

/// Throws ArgumentError for the first label that is no class: a fit checks a batch before its parallel region.
inline void check_labels(const std::int32_t* labels, long count, long classes, std::optional<std::int32_t> ignore = {},
                         long first = 0) {
  for (long i = 0; i < count; ++i)
    if ((labels[i] < 0 || labels[i] >= classes) && !(ignore && labels[i] == *ignore))
      throw ArgumentError("sample " + std::to_string(first + i) + " has the label " + std::to_string(labels[i]) +
                          "; the network has " + std::to_string(classes) + " outputs, so labels are 0 to " +
                          std::to_string(classes - 1) +
                          (ignore ? " (or " + std::to_string(*ignore) + ", which is ignored)"
                                  : ": mend the labels, or name the one to leave out with .ignore_label"));
}

template <class L> concept HasTarget = requires { { L::target } -> std::convertible_to<Target>; };
template <class L> concept HasLossCall = requires(const L& loss, const LossCall<float, Cpu>& call) {
  { loss(call) } -> std::same_as<LossSums>;
};
/// The divisor's contribution without a pass over the outputs, so that the gradient can be scaled as it is written.
template <class L> concept HasLossWeight = requires(const L& loss, const LossCall<float, Cpu>& call) {
  { loss.weight(call) } -> std::convertible_to<double>;
};

/// A loss: says what targets it takes, and turns a LossCall into LossSums.
template <class L> concept Loss = std::copyable<L> && HasTarget<L> && HasLossCall<L> && HasLossWeight<L>;

namespace detail {
template <class L> inline constexpr bool is_a_loss = false;
}

/// Refuses, with one sentence, a type that is no loss. (The sentences are here and not in a type: clang would add an error.)
template <class L> consteval void assert_loss() {
  if constexpr (!std::copyable<L>)
    static_assert(detail::is_a_loss<L>, "a loss is a value: it must be copyable");
  else if constexpr (!HasTarget<L>)
    static_assert(detail::is_a_loss<L>, "a loss says what it compares with: give it static constexpr nn::Target target");
  else if constexpr (!HasLossCall<L>)
    static_assert(
        detail::is_a_loss<L>,
        "a loss is called with a LossCall and returns LossSums: give it LossSums operator()(const LossCall<Scalar, Cpu>&) const");
  else if constexpr (!HasLossWeight<L>)
    static_assert(detail::is_a_loss<L>, "a loss knows its divisor: give it double weight(const LossCall<Scalar, Cpu>&) const");
}

namespace detail {
/// Elementwise losses: f(output, target, slope) returns the loss and sets its derivative. The mean is over all elements.
template <class Scalar, class Function> LossSums vector_loss(const LossCall<Scalar, Cpu>& call, Function&& f) {
  long rows = call.count, columns = call.width, pitch = call.output_pitch, target_pitch = call.target_pitch;
  if (pitch == columns && target_pitch == columns)
    columns *= rows, rows = rows > 0 ? 1 : 0, pitch = columns, target_pitch = columns;
  constexpr long block = 16;                        // so many at a time: the compiler makes vectors of it
  double sums[block] = {};
  for (long r = 0; r < rows; ++r) {
    const Scalar* x = call.outputs + r * pitch;
    const Scalar* t = call.targets + r * target_pitch;
    Scalar* g = call.gradient ? call.gradient + r * pitch : nullptr;
    long i = 0;
    for (; i + block <= columns; i += block) {
      Scalar loss[block], slope[block];
      for (long k = 0; k < block; ++k) loss[k] = f(x[i + k], t[i + k], i + k, slope[k]);
      if (g) for (long k = 0; k < block; ++k) g[i + k] = slope[k] * call.scale;
      for (long k = 0; k < block; ++k) sums[k] += static_cast<double>(loss[k]);
    }
    for (; i < columns; ++i) {
      Scalar slope;
      sums[i % block] += static_cast<double>(f(x[i], t[i], i, slope));
      if (g) g[i] = slope * call.scale;
    }
    if (g) for (; i < pitch; ++i) g[i] = 0;
  }
  for (long k = 1; k < block; ++k) sums[0] += sums[k];
  return {sums[0], static_cast<double>(call.count) * static_cast<double>(call.width), 0};
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
