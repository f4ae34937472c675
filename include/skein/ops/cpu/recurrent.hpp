// SPDX-License-Identifier: Apache-2.0
// A recurrent cell over sequences, forward and backward, step by step: two products of matrices a step, and the cell on each
// sample.
#pragma once
#include <algorithm>

#include "../gemm.hpp"
#include "recurrent_cells.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Sizes of a recurrent layer: `steps` of `inputs` values, `hidden` values of state.
struct SequenceShape {
  long steps = 1, inputs = 1, hidden = 1;
  bool reversed = false;  ///< the last step first

  /// The place of the k-th step in the sequence.
  constexpr long place(long k) const { return reversed ? steps - 1 - k : k; }
};

/// Weights (inputs, gates * hidden) and (hidden, gates * hidden), and two biases, in rows `pitch` apart.
template <class Scalar> struct RecurrentWeights {
  Scalar *of_input, *of_hidden, *bias_input, *bias_hidden;
  long pitch;
};

/// The cell on `batch` sequences. `kept`: what forward leaves for backward, kept_count(shape) values a sample.
template <class Cell, class Scalar> class Recurrence {
 public:
  /// Steps, and behind them the gradients of h and c, and a row of zeros: the state before the first step.
  static constexpr long kept_count(const SequenceShape& s) {
    return (s.steps * Cell::kept + 2) * s.hidden + Cell::kept * s.hidden;
  }

  Recurrence(const SequenceShape& shape, long batch, const Scalar* x, Scalar* kept)
      : s_(shape), batch_(batch), x_(x), kept_(kept) {}

  void forward(const RecurrentWeights<const Scalar>& w) {
    const long n = s_.hidden, columns = Cell::gates * n;
    each_sample([&](Scalar* sample) { std::fill_n(sample + zeros(), Cell::kept * n, Scalar(0)); });
    for (long k = 0; k < s_.steps; ++k) {
      each_sample([&](Scalar* sample) {
        Scalar* const now = sample + at(k);
        for (long j = 0; j < columns; ++j) now[j] = w.bias_input[j] + (j < own_columns() ? w.bias_hidden[j] : Scalar(0));
        if constexpr (Cell::splits) std::copy_n(w.bias_hidden + own_columns(), n, now + Cell::memory * n);
      });
      product(columns, s_.inputs, x_ + s_.place(k) * s_.inputs, s_.steps * s_.inputs, w.of_input, w.pitch, kept_ + at(k));
      if (k > 0) {
        const Scalar* const h = kept_ + at(k - 1) + Cell::state * n;
        product(own_columns(), n, h, stride(), w.of_hidden, w.pitch, kept_ + at(k));
        if constexpr (Cell::splits)
          product(n, n, h, stride(), w.of_hidden + own_columns(), w.pitch, kept_ + at(k) + Cell::memory * n);
      }
      each_sample([&](Scalar* sample) { Cell::forward(n, sample + at(k), sample + before(k)); });
    }
  }
  /// h of a sample after its k-th step.
  const Scalar* state(long sample, long k) const { return kept_ + sample * stride() + at(k) + Cell::state * s_.hidden; }

  /// dy(sample, k): the gradient of h after the k-th step, or nullptr. Adds to the weights' gradients; dx (batch, steps, inputs)
  /// is written where it is not null. Overwrites what forward has kept.
  template <class Gradient>
  void backward(const RecurrentWeights<const Scalar>& w, const Gradient& dy, const RecurrentWeights<Scalar>& dw, Scalar* dx) {
    const long n = s_.hidden, columns = Cell::gates * n;
    each_sample([&](Scalar* sample) { std::fill_n(sample + gradients(), 2 * n, Scalar(0)); });
    for (long k = s_.steps; k-- > 0;) {
      for (long b = 0; b < batch_; ++b) {
        Scalar *const sample = kept_ + b * stride(), *const dh = sample + gradients();
        if (const Scalar* const d = dy(b, k)) zip([](auto p, auto q) { return p + q; }, n, dh, d, dh);
        Cell::backward(n, sample + at(k), sample + before(k), dh, dh + n);
        add_biases(sample + at(k), dw);
      }
      const Scalar *const gates = kept_ + at(k), *const split = gates + Cell::memory * n;
      add_transposed(s_.inputs, columns, x_ + s_.place(k) * s_.inputs, s_.steps * s_.inputs, gates, dw.of_input, dw.pitch);
      if (dx) {
        Scalar* const to = dx + s_.place(k) * s_.inputs;
        back(s_.inputs, columns, gates, w.of_input, w.pitch, Scalar(0), to, s_.steps * s_.inputs);
      }
      if (k == 0) continue;
      const Scalar* const h = kept_ + at(k - 1) + Cell::state * n;
      add_transposed(n, own_columns(), h, stride(), gates, dw.of_hidden, dw.pitch);
      back(n, own_columns(), gates, w.of_hidden, w.pitch, Cell::splits ? Scalar(1) : Scalar(0), kept_ + gradients(), stride());
      if constexpr (Cell::splits) {
        add_transposed(n, n, h, stride(), split, dw.of_hidden + own_columns(), dw.pitch);
        back(n, n, split, w.of_hidden + own_columns(), w.pitch, Scalar(1), kept_ + gradients(), stride());
      }
    }
  }

 private:
  long stride() const { return kept_count(s_); }
  long at(long k) const { return k * Cell::kept * s_.hidden; }
  long gradients() const { return at(s_.steps); }
  long zeros() const { return gradients() + 2 * s_.hidden; }
  long before(long k) const { return k > 0 ? at(k - 1) : zeros(); }
  /// Columns of the hidden state's product that are added to those of the input's.
  long own_columns() const { return (Cell::gates - Cell::splits) * s_.hidden; }
  template <class Visit> void each_sample(const Visit& visit) {
    for (long b = 0; b < batch_; ++b) visit(kept_ + b * stride());
  }
  void product(long columns, long inner, const Scalar* a, long a_pitch, const Scalar* w, long pitch, Scalar* to) {
    gemm<Cpu>(Transpose::no, Transpose::no, batch_, columns, inner, Scalar(1), a, a_pitch, w, pitch, Scalar(1), to, stride());
  }
  void add_transposed(long rows, long columns, const Scalar* a, long a_pitch, const Scalar* g, Scalar* dw, long pitch) {
    gemm<Cpu>(Transpose::yes, Transpose::no, rows, columns, batch_, Scalar(1), a, a_pitch, g, stride(), Scalar(1), dw, pitch);
  }
  void back(long columns, long inner, const Scalar* g, const Scalar* w, long pitch, Scalar beta, Scalar* to, long to_pitch) {
    gemm<Cpu>(Transpose::no, Transpose::yes, batch_, columns, inner, Scalar(1), g, stride(), w, pitch, beta, to, to_pitch);
  }
  void add_biases(const Scalar* now, const RecurrentWeights<Scalar>& dw) {
    const long n = s_.hidden;
    const auto add = [](auto p, auto q) { return p + q; };
    zip(add, Cell::gates * n, dw.bias_input, now, dw.bias_input);
    zip(add, own_columns(), dw.bias_hidden, now, dw.bias_hidden);
    if constexpr (Cell::splits)
      zip(add, n, dw.bias_hidden + own_columns(), now + Cell::memory * n, dw.bias_hidden + own_columns());
  }

  SequenceShape s_;
  long batch_;
  const Scalar* x_;
  Scalar* kept_;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
