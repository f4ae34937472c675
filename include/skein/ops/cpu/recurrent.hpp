// SPDX-License-Identifier: Apache-2.0
// A recurrent cell over sequences, forward and backward. What it keeps lies step behind step, in each step sample behind sample:
// so the rows of a step are neighbours, whose products stay in the second-level cache with the cell between them.
//
//     T steps, N samples, C inputs, H values of state, G columns of gates (gates * H); P(G) is row_pitch(G), and so on; k a step,
//     w weights, dw their gradients
#pragma once
#include <algorithm>

#include "recurrent_cells.hpp"
#include "row_products.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// How a sequence is read.
struct SequenceOrder {
  long steps = 1;
  bool reversed = false;  ///< the last step first

  /// The place of the k-th step in the sequence.
  constexpr long place(long k) const { return reversed ? steps - 1 - k : k; }
};

/// Weights (C, P(G)) and (H, P(G)), and two biases.
template <class Scalar> struct RecurrentWeights { Scalar *of_input, *of_hidden, *bias_input, *bias_hidden; };

/// Memory of one pass over N sequences.
template <class Scalar> struct RecurrentMemory {
  const Scalar* x;       ///< (N, T, C)
  Scalar* kept;          ///< (N, RecurrentSizes::kept): from forward to backward
  const Scalar* packed;  ///< written by pack_weights()
  Scalar* workspace;     ///< undefined between calls
};

/// What a recurrent layer of C inputs and H values of state wants.
template <class Cell> struct RecurrentSizes {
  long inputs, hidden;

  constexpr long columns() const { return Cell::gates * hidden; }
  /// Scalars a sample: gates (T), h and the cell's memory (T + 1, the state before the first step in front), the gradients of
  /// both, and a row of a product that is not kept.
  constexpr long kept(long steps) const {
    const long state = row_pitch(hidden), scratch = std::max(Cell::splits ? row_pitch(columns()) : 0, row_pitch(inputs));
    const long all = steps * row_pitch(columns()) + (steps + 1) * (Cell::memory ? 2 : 1) * state + 2 * state + scratch;
    return whole_line(all);
  }
  constexpr long packed_weights() const {
    return row_products_packed(inputs, columns()) + row_products_packed(hidden, columns());
  }
  constexpr long workspace() const { return 2 * row_pitch(columns()); }
};

/// The cell on `batch` sequences of C = Inputs values, with H = Hidden values of state.
template <class Cell, class Scalar, int Inputs, int Hidden> class Recurrence {
  static constexpr int columns = Cell::gates * Hidden;
  using OfInput = RowProducts<Scalar, Inputs, columns>;
  using OfHidden = RowProducts<Scalar, Hidden, columns>;
  static constexpr long gate_pitch = row_pitch(columns), pitch = row_pitch(Hidden), input_pitch = row_pitch(Inputs);

 public:
  Recurrence(const SequenceOrder& order, long batch, const RecurrentMemory<Scalar>& memory)
      : order_(order), batch_(batch), m_(memory), gates_(memory.kept), state_(gates_ + order.steps * batch * gate_pitch),
        memory_(state_ + (order.steps + 1) * batch * pitch),
        state_gradient_(memory_ + (Cell::memory ? (order.steps + 1) * batch * pitch : 0)),
        memory_gradient_(state_gradient_ + batch * pitch), scratch_(memory_gradient_ + batch * pitch) {}

  /// Columns [begin, end) of both weights: the transposed copies that backward reads.
  static void pack_weights(long begin, long end, const RecurrentWeights<const Scalar>& w, Scalar* packed) {
    OfInput::pack_weights(begin, end, w.of_input, packed);
    OfHidden::pack_weights(begin, end, w.of_hidden, packed + OfInput::packed_weights);
  }

  /// `continues`: the states before the first step are those that the call before, on as many sequences, has ended with; else
  /// zeros.
  void forward(const RecurrentWeights<const Scalar>& w, bool continues = false) {
    Scalar* const bias = m_.workspace;
    std::copy_n(w.bias_input, gate_pitch, bias);
    if constexpr (!Cell::splits)
      for (long j = 0; j < columns; ++j) bias[j] += w.bias_hidden[j];
    begin(state(0), state(order_.steps), continues);
    if constexpr (Cell::carries) begin(memory(0), memory(order_.steps), continues);
    for (long k = 0; k < order_.steps; ++k) {
      OfInput::forward(batch_, x_at(k), x_pitch(), w.of_input, bias, gates(k), gate_pitch);
      if constexpr (Cell::splits) {
        if (k > 0 || continues) OfHidden::forward(batch_, state(k), pitch, w.of_hidden, w.bias_hidden, scratch_, gate_pitch);
        else repeat(w.bias_hidden);
      } else if (k > 0 || continues) {
        OfHidden::forward(batch_, state(k), pitch, w.of_hidden, nullptr, gates(k), gate_pitch);
      }
      for (long n = 0; n < batch_; ++n) Cell::forward(Hidden, rows(n, k));
    }
  }
  /// h of a sample after its k-th step.
  const Scalar* state_after(long sample, long k) const { return state(k + 1) + sample * pitch; }

  /// What the k-th step of a sample reads: (C) and (H).
  const Scalar* input_of(long sample, long k) const { return x_at(k) + sample * x_pitch(); }
  const Scalar* state_before(long sample, long k) const { return state(k) + sample * pitch; }
  /// After backward: (N, P(G)). Those of the hidden state's product, of a cell that splits, have their last H columns apart.
  const Scalar* gate_gradients(long k) const { return gates(k); }
  void copy_hidden_gradients(long k, Scalar* to) const requires Cell::splits {
    for (long n = 0; n < batch_; ++n, to += gate_pitch)
      std::copy_n(memory(k + 1) + n * pitch, Hidden, std::copy_n(gates(k) + n * gate_pitch, columns - Hidden, to));
  }

  /// dy(sample, k): the gradient of h after the k-th step, or nullptr. Adds to the weights' gradients; dx (N, T, C) is written
  /// where it is not null. The gates become their gradients.
  template <class Gradient> void backward(const RecurrentWeights<const Scalar>& w, const Gradient& dy,
                                          const RecurrentWeights<Scalar>& dw, Scalar* dx, bool continues = false) {
    std::fill_n(state_gradient_, 2 * batch_ * pitch, Scalar(0));
    std::fill_n(m_.workspace, 2 * gate_pitch, Scalar(0));
    for (long k = order_.steps; k-- > 0;) {
      for (long n = 0; n < batch_; ++n) {
        const CellRows<Scalar> r = rows(n, k);
        if (const Scalar* const d = dy(n, k)) add_row(Hidden, d, r.state_gradient);
        Cell::backward(Hidden, r);
        add_row(columns, r.gates, m_.workspace);
        if constexpr (Cell::splits) add_row(Hidden, r.hidden + columns - Hidden, m_.workspace + gate_pitch);
      }
      const Scalar* const of_hidden = Cell::splits ? scratch_ : gates(k);
      OfInput::add_weight_gradient(batch_, x_at(k), x_pitch(), gates(k), gate_pitch, dw.of_input);
      if (k > 0 || continues) OfHidden::add_weight_gradient(batch_, state(k), pitch, of_hidden, gate_pitch, dw.of_hidden);
      if (k > 0) {
        OfHidden::input_gradient(batch_, of_hidden, gate_pitch, w.of_hidden, m_.packed + OfInput::packed_weights, Cell::passes_h,
                                 state_gradient_, pitch);
      }
      if (dx) input_gradient(k, w, dx);
    }
    add_row(columns, m_.workspace, dw.bias_input);
    add_row(columns - (Cell::splits ? Hidden : 0), m_.workspace, dw.bias_hidden);
    if constexpr (Cell::splits) add_row(Hidden, m_.workspace + gate_pitch, dw.bias_hidden + columns - Hidden);
  }

 private:
  const Scalar* x_at(long k) const { return m_.x + order_.place(k) * Inputs; }
  long x_pitch() const { return order_.steps * Inputs; }
  Scalar* gates(long k) const { return gates_ + k * batch_ * gate_pitch; }
  Scalar* state(long k) const { return state_ + k * batch_ * pitch; }    // before step k
  Scalar* memory(long k) const { return memory_ + k * batch_ * pitch; }  // likewise
  CellRows<Scalar> rows(long n, long k) const {
    const long at = n * pitch, next = at + batch_ * pitch;
    CellRows<Scalar> r{.gates = gates(k) + n * gate_pitch, .hidden = scratch_ + n * gate_pitch};
    r.state = state(k) + next;
    r.memory = memory(k) + next;
    r.state_before = state(k) + at;
    r.memory_before = memory(k) + at;
    r.state_gradient = state_gradient_ + at;
    r.memory_gradient = memory_gradient_ + at;
    return r;
  }
  void begin(Scalar* first, const Scalar* last, bool continues) {
    if (continues) std::copy_n(last, batch_ * pitch, first);
    else std::fill_n(first, batch_ * pitch, Scalar(0));
  }
  void repeat(const Scalar* bias) {
    for (long n = 0; n < batch_; ++n) std::copy_n(bias, columns, scratch_ + n * gate_pitch);
  }
  static void add_row(long n, const Scalar* from, Scalar* to) {
    vector_by_vector<Scalar>(n, [&](const auto& at) { at.store(to, at.load(to) + at.load(from)); });
  }
  /// Rows of a step do not lie beside each other in dx, and a product writes behind their end.
  void input_gradient(long k, const RecurrentWeights<const Scalar>& w, Scalar* dx) {
    OfInput::input_gradient(batch_, gates(k), gate_pitch, w.of_input, m_.packed, false, scratch_, input_pitch);
    Scalar* const to = dx + order_.place(k) * Inputs;
    for (long n = 0; n < batch_; ++n) std::copy_n(scratch_ + n * input_pitch, Inputs, to + n * x_pitch());
  }

  SequenceOrder order_;
  long batch_;
  RecurrentMemory<Scalar> m_;
  Scalar *gates_, *state_, *memory_, *state_gradient_, *memory_gradient_, *scratch_;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
