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

}  // namespace skein::inline SKEIN_ABI

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// A cell of H values over sequences.
template <class Cell, int H, class... Options> struct Recurrent {
  static_assert(H > 0, "a recurrent layer has at least one value of state");
  static constexpr bool last_alone = has_option<LastState, Options...>, reversed = has_option<Reversed, Options...>;

  static constexpr LayerInfo describe(Extents in) {
    constexpr int columns = Cell::gates * H;
    const int steps = in.rank == 2 ? in[0] : 1, inputs = in.last();
    LayerInfo info;
    info.output = last_alone ? Extents{1, {H}} : Extents{2, {steps, H}};
    info.parameters[0] = {.name = "weight_ih", .extents = {2, {inputs, columns}}, .fan_in = H, .fan_out = H};
    info.parameters[1] = {.name = "weight_hh", .extents = {2, {H, columns}}, .fan_in = H, .fan_out = H};
    info.parameters[2] = {.name = "bias_ih", .extents = {1, {columns}}, .fan_in = H, .fan_out = H, .decay = false};
    info.parameters[3] = {.name = "bias_hh", .extents = {1, {columns}}, .fan_in = H, .fan_out = H, .decay = false};
    info.saved_for_backward = ops::cpu::Recurrence<Cell, float>::kept_count({steps, inputs, H});
    info.flops = 2L * steps * columns * (inputs + H);
    info.saves_input = true;
    info.fault = in.rank == 2 ? Fault::none : Fault::wants_sequence;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents) {
    static_assert(on_host<Device>, "Rnn, Lstm and Gru run on the host so far: take a model on sk::Cpu");
    return {};
  }

  template <class In, class Frame> static void forward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    auto steps = recurrence<In>(f);
    steps.forward(weights<In>(f.parameters));
    constexpr long t = In::extents[0], pitch = sample_pitch(describe(In::extents).output);
    for (long b = 0; b < f.batch; ++b) {
      Scalar* const y = f.y + b * pitch;
      if constexpr (last_alone) std::fill(std::copy_n(steps.state(b, t - 1), H, y), y + pitch, Scalar(0));
      else
        for (long k = 0; k < t; ++k) std::copy_n(steps.state(b, k), H, y + shape<In>().place(k) * H);
    }
  }
  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    constexpr long t = In::extents[0], pitch = sample_pitch(describe(In::extents).output);
    const auto dy = [&](long b, long k) -> const Scalar* {
      if constexpr (last_alone) return k == t - 1 ? f.dy + b * pitch : nullptr;
      else return f.dy + b * pitch + shape<In>().place(k) * H;
    };
    recurrence<In>(f).backward(weights<In>(f.parameters), dy, weights<In>(f.gradients), f.dx);
  }

 private:
  template <class In> static constexpr ops::cpu::SequenceShape shape() {
    return {In::extents[0], In::extents.last(), H, reversed};
  }
  template <class In, class Frame> static auto recurrence(const Frame& f) {
    return ops::cpu::Recurrence<Cell, typename Frame::Scalar>(shape<In>(), f.batch, f.x, f.saved_for_backward);
  }
  template <class In, class Scalar> static ops::cpu::RecurrentWeights<Scalar> weights(Scalar* first) {
    constexpr long pitch = row_pitch(Cell::gates * H), inputs = In::extents.last();
    Scalar* const hidden = first + inputs * pitch;
    return {first, hidden, hidden + H * pitch, hidden + (H + 1) * pitch, pitch};
  }
};
}  // namespace detail

/// Elman's network: h = tanh(x W + b + h' U + d), over (T, C) to (T, H). Options: LastState, Reversed. The state before the first
/// step is zero.
template <int H, class... Options> struct Rnn : detail::Recurrent<ops::cpu::RnnCell, H, Options...> {};

/// LSTM with input, forget and output gates, over (T, C) to (T, H). Options: LastState, Reversed.
template <int H, class... Options> struct Lstm : detail::Recurrent<ops::cpu::LstmCell, H, Options...> {};

/// GRU with reset and update gates, over (T, C) to (T, H). Options: LastState, Reversed.
template <int H, class... Options> struct Gru : detail::Recurrent<ops::cpu::GruCell, H, Options...> {};

}  // namespace skein::inline SKEIN_ABI::nn
