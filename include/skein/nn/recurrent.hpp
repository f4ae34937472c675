// SPDX-License-Identifier: Apache-2.0
// Rnn, Lstm and Gru over sequences (T, C): all states (T, H), or the last one. Formulas, order of the gates, both biases and the
// initial values are PyTorch's torch.nn.RNN, LSTM and GRU; weights are stored transposed, (C, gates * H). Several layers are a
// Sequential of them; both directions are a Concat<Lstm<H>, Lstm<H, Reversed>>.
#pragma once
#include <algorithm>

#include "../ops/cpu/recurrent.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI {

struct LastState {};  ///< recurrent layers: the output is the state after the last step alone
struct Reversed {};   ///< recurrent layers: the last step of the sequence comes first
/// Recurrent layers: a sequence begins with the state that the sequence in its place of the batch before has ended with. No
/// gradient goes back there (truncated back-propagation through time). Executor::reset_states() begins with zeros again.
struct Stateful {};

}  // namespace skein::inline SKEIN_ABI

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// A cell of H values over sequences.
template <class Cell, int H, class... Options> struct Recurrent {
  static_assert(H > 0, "a recurrent layer has at least one value of state");
  using options = LayerOptions<List<LastState, Reversed, Stateful>, Options...>;
  static constexpr bool last_alone = has_option<LastState>(options{}), reversed = has_option<Reversed>(options{}),
                        stateful = has_option<Stateful>(options{});

  static constexpr LayerInfo describe(Extents in) {
    constexpr int columns = Cell::gates * H;
    const int steps = in.rank == 2 ? in[0] : 1, inputs = in.last();
    LayerInfo info;
    info.output = last_alone ? Extents{1, {H}} : Extents{2, {steps, H}};
    info.parameters[0] = {.name = "weight_ih", .extents = {2, {inputs, columns}}, .fan_in = H, .fan_out = H};
    info.parameters[1] = {.name = "weight_hh", .extents = {2, {H, columns}}, .fan_in = H, .fan_out = H};
    info.parameters[2] = {.name = "bias_ih", .extents = {1, {columns}}, .fan_in = H, .fan_out = H, .decay = false};
    info.parameters[3] = {.name = "bias_hh", .extents = {1, {columns}}, .fan_in = H, .fan_out = H, .decay = false};
    info.saved_for_backward = ops::cpu::RecurrentSizes<Cell>{inputs, H}.kept(steps);
    info.flops = 2L * steps * columns * (inputs + H);
    info.saves_input = true;
    info.carries_state = stateful;
    if (Cell::splits) {
      const long hidden = inputs * gate_pitch, biases = hidden + H * gate_pitch;
      info.curvature[0] = {.a = inputs + 1L, .g = columns, .last_row = biases};
      info.curvature[1] = {.a = H + 1L, .g = columns, .begin = hidden, .last_row = biases + gate_pitch};
    } else {
      info.curvature[0] = {inputs + H + 2L, columns};
    }
    info.fault = in.rank != 2 ? Fault::wants_sequence : stateful && reversed ? Fault::state_of_reversed : Fault::none;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    static_assert(on_host<Device>, "Rnn, Lstm and Gru run on the host so far: take a model on sk::Cpu");
    const ops::cpu::RecurrentSizes<Cell> sizes{in.last(), H};
    return {.packed_weights = sizes.packed_weights(), .workspace = sizes.workspace()};
  }

  template <class In, class Frame> static void forward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    auto steps = recurrence<In>(f);
    steps.forward(weights<In>(f.parameters), continues(f));
    constexpr long t = In::extents[0], pitch = sample_pitch(describe(In::extents).output);
    for (long b = 0; b < f.batch; ++b) {
      Scalar* const y = f.y + b * pitch;
      if constexpr (last_alone) std::fill(std::copy_n(steps.state_after(b, t - 1), H, y), y + pitch, Scalar(0));
      else
        for (long k = 0; k < t; ++k) std::copy_n(steps.state_after(b, k), H, y + order<In>().place(k) * H);
    }
  }
  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    constexpr long t = In::extents[0], pitch = sample_pitch(describe(In::extents).output);
    const auto dy = [&](long b, long k) -> const Scalar* {
      if constexpr (last_alone) return k == t - 1 ? f.dy + b * pitch : nullptr;
      else return f.dy + b * pitch + order<In>().place(k) * H;
    };
    recurrence<In>(f).backward(weights<In>(f.parameters), dy, weights<In>(f.gradients), f.dx, continues(f));
  }
  /// Steps count as if they were independent: A is the mean over them, G the sum. Martens, Ba and Johnson, "Kronecker-factored
  /// curvature approximations for recurrent neural networks", ICLR 2018; "expand" of Eschenhagen et al., NeurIPS
  /// 2023, arXiv:2311.00636. Both weights and both biases lie as one matrix, whose input at a step is (x, the state before, 1,
  /// 1). A cell whose gates see the state otherwise than the input has two: of (x, 1), and of (the state before, 1).
  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    if constexpr (Cell::splits) split_factors<In>(f, sums, sums.next());
    else joint_factors<In>(f, sums);
  }
  /// The transposed copies that backward reads; each worker a part.
  template <class In, class Frame> static void pack_weights(Frame& f) {
    const auto [lo, hi] = f.context->worker.slice(Cell::gates * H, 8);
    Steps<In, typename Frame::Scalar>::pack_weights(lo, hi, weights<In>(f.parameters), f.packed_weights);
  }

 private:
  static constexpr long gate_pitch = row_pitch(Cell::gates * H);
  template <class In, class Scalar> using Steps = ops::cpu::Recurrence<Cell, Scalar, In::extents.last(), H>;
  template <class In, class Frame, class Sums> static void joint_factors(const Frame& f, const Sums& sums) {
    using Scalar = typename Frame::Scalar;
    constexpr long inputs = In::extents.last(), width = inputs + H + 2, pitch = row_pitch(width), steps = In::extents[0];
    Scalar* const rows = sums.room(f.batch * pitch);
    const auto recurrence_of = recurrence<In>(f);
    for (long k = 0; k < steps; ++k) {
      for (long b = 0; b < f.batch; ++b) {
        Scalar* const row = rows + b * pitch;
        std::copy_n(recurrence_of.input_of(b, k), inputs, row);
        std::copy_n(recurrence_of.state_before(b, k), H, row + inputs);
        std::fill(row + inputs + H, row + pitch, Scalar(1));
      }
      sums.inputs(rows, f.batch, width, pitch, Scalar(1) / static_cast<Scalar>(steps));
      sums.gradients(recurrence_of.gate_gradients(k), f.batch, gate_pitch);
    }
  }
  template <class In, class Frame, class Sums>
  static void split_factors(const Frame& f, const Sums& of_input, const Sums& of_hidden) {
    constexpr long inputs = In::extents.last(), steps = In::extents[0];
    constexpr auto share = typename Frame::Scalar(1) / static_cast<typename Frame::Scalar>(steps);
    auto* const gradients = of_hidden.room(f.batch * gate_pitch);
    const auto recurrence_of = recurrence<In>(f);
    for (long k = 0; k < steps; ++k) {
      of_input.inputs(recurrence_of.input_of(0, k), f.batch, inputs, steps * inputs, share);
      of_input.gradients(recurrence_of.gate_gradients(k), f.batch, gate_pitch);
      of_hidden.inputs(recurrence_of.state_before(0, k), f.batch, H, row_pitch(H), share);
      recurrence_of.copy_hidden_gradients(k, gradients);
      of_hidden.gradients(gradients, f.batch, gate_pitch);
    }
  }
  template <class In> static constexpr ops::cpu::SequenceOrder order() { return {In::extents[0], reversed}; }

  template <class Frame> static bool continues(const Frame& f) { return stateful && f.context->continues; }
  template <class In, class Frame> static auto recurrence(const Frame& f) {
    return Steps<In, typename Frame::Scalar>(order<In>(), f.batch, {f.x, f.saved_for_backward, f.packed_weights, f.workspace});
  }
  template <class In, class Scalar> static ops::cpu::RecurrentWeights<Scalar> weights(Scalar* first) {
    constexpr long inputs = In::extents.last();
    Scalar* const hidden = first + inputs * gate_pitch;
    return {first, hidden, hidden + H * gate_pitch, hidden + (H + 1) * gate_pitch};
  }
};
}  // namespace detail

/// Elman's network: h = tanh(x W + b + h' U + d), over (T, C) to (T, H). Options: LastState, Reversed, Stateful. Without Stateful
/// the state before the first step is zero.
template <int H, class... Options> struct Rnn : detail::Recurrent<ops::cpu::RnnCell, H, Options...> {};

/// LSTM with input, forget and output gates, over (T, C) to (T, H). Options: LastState, Reversed, Stateful.
template <int H, class... Options> struct Lstm : detail::Recurrent<ops::cpu::LstmCell, H, Options...> {};

/// GRU with reset and update gates, over (T, C) to (T, H). Options: LastState, Reversed, Stateful.
template <int H, class... Options> struct Gru : detail::Recurrent<ops::cpu::GruCell, H, Options...> {};

}  // namespace skein::inline SKEIN_ABI::nn
