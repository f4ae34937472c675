// SPDX-License-Identifier: Apache-2.0
// What one step of a recurrent cell does to one sample, in one pass of vectors over its H values: Elman's with tanh, LSTM
// (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014, with the reset gate behind the product, as PyTorch and cuDNN have
// it).
#pragma once
#include <cmath>

#include "map.hpp"
#include "vector.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The rows of one sample in one step. `gates` (gates * H): in PyTorch's order, before their functions when forward begins, then
/// their values, after backward their gradients. `hidden`, of cells that split: the hidden state's product alone, after backward
/// the gradients of it.
template <class Scalar> struct CellRows {
  Scalar *gates = nullptr, *hidden = nullptr;
  Scalar *state = nullptr, *memory = nullptr;                      ///< h and what else is kept: c of an LSTM; H values each
  const Scalar *state_before = nullptr, *memory_before = nullptr;  ///< of the step before
  Scalar *state_gradient = nullptr,
         *memory_gradient = nullptr;  ///< of h, c; after backward those of the step before, past products
};

namespace detail {
template <class T> SKEIN_ALWAYS_INLINE T sigmoid_of(const T& x) {
  using std::exp;
  return T(1) / (T(1) + exp(-x));
}
template <class T> SKEIN_ALWAYS_INLINE T tanh_of(const T& x) {
  using std::tanh;
  return tanh(x);
}
#if SKEIN_WITH_XSIMD
/// A quotient of polynomials, fitted to the least relative error up to where floats are 1: within 3 units in the last place,
/// without a branch on the values.
SKEIN_ALWAYS_INLINE skein::detail::Batch<float> tanh_of(const skein::detail::Batch<float>& x) {
  using V = skein::detail::Batch<float>;
  const auto within = [](const V& v, float most) {  // what is not a number stays so
    return xsimd::select(xsimd::abs(v) > V(most), xsimd::copysign(V(most), v), v);
  };
  const V t = within(x, 9), u = t * t;
  V p = fused(V(1.33552982e-08f), u, V(2.06096029e-05f)), q = fused(V(7.77683681e-07f), u, V(0.000328568887f));
  p = fused(p, u, V(0.00349562219f)), q = fused(q, u, V(0.0258771144f));
  p = fused(p, u, V(0.13381055f)), q = fused(q, u, V(0.467143714f));
  p = fused(p, u, V(1.0f)), q = fused(q, u, V(1.0f));
  return within(t * p / q, 1);
}
#endif
}  // namespace detail

/// h = tanh(gate).
struct RnnCell {
  static constexpr int gates = 1;
  static constexpr bool splits = false;    ///< the hidden state's product stays apart from the input's
  static constexpr bool memory = false;    ///< beside h another array is kept
  static constexpr bool carries = false;   ///< which the next step reads
  static constexpr bool passes_h = false;  ///< backward gives h of the step before a gradient past the products

  template <class Scalar> static void forward(long values, const CellRows<Scalar>& r) {
    vector_by_vector<Scalar>(values, [&](const auto& at) { at.store(r.state, detail::tanh_of(at.load(r.gates))); });
  }
  template <class Scalar> static void backward(long values, const CellRows<Scalar>& r) {
    vector_by_vector<Scalar>(values, [&](const auto& at) {
      const auto h = at.load(r.state);
      at.store(r.gates, at.load(r.state_gradient) * (decltype(h)(1) - h * h));
    });
  }
};

/// i, f, o = sigmoid, g = tanh of their gates; c = f c' + i g; h = o tanh(c).
struct LstmCell {
  static constexpr int gates = 4;
  static constexpr bool splits = false, memory = true, carries = true, passes_h = false;

  template <class Scalar> static void forward(long values, const CellRows<Scalar>& r) {
    Scalar *const gi = r.gates, *const gf = gi + values, *const gg = gf + values, *const go = gg + values;
    vector_by_vector<Scalar>(values, [&](const auto& at) {
      const auto i = detail::sigmoid_of(at.load(gi)), f = detail::sigmoid_of(at.load(gf)), g = detail::tanh_of(at.load(gg)),
                 o = detail::sigmoid_of(at.load(go)), c = f * at.load(r.memory_before) + i * g;
      at.store(gi, i);
      at.store(gf, f);
      at.store(gg, g);
      at.store(go, o);
      at.store(r.memory, c);
      at.store(r.state, o * detail::tanh_of(c));
    });
  }
  template <class Scalar> static void backward(long values, const CellRows<Scalar>& r) {
    Scalar *const gi = r.gates, *const gf = gi + values, *const gg = gf + values, *const go = gg + values;
    vector_by_vector<Scalar>(values, [&](const auto& at) {
      const auto i = at.load(gi), f = at.load(gf), g = at.load(gg), o = at.load(go), t = detail::tanh_of(at.load(r.memory)),
                 dh = at.load(r.state_gradient);
      const auto one = decltype(i + i)(1);
      const auto dc = at.load(r.memory_gradient) + dh * o * (one - t * t);
      at.store(gi, dc * g * i * (one - i));
      at.store(gf, dc * at.load(r.memory_before) * f * (one - f));
      at.store(gg, dc * i * (one - g * g));
      at.store(go, dh * t * o * (one - o));
      at.store(r.memory_gradient, dc * f);
    });
  }
};

/// r, z = sigmoid, m = tanh(gate + r q) for q the hidden state's part of it; h = (1 - z) m + z h'. q is kept; backward leaves its
/// gradient there.
struct GruCell {
  static constexpr int gates = 3;
  static constexpr bool splits = true, memory = true, carries = false, passes_h = true;

  template <class Scalar> static void forward(long values, const CellRows<Scalar>& row) {
    Scalar *const gr = row.gates, *const gz = gr + values, *const gm = gz + values;
    const Scalar *const hr = row.hidden, *const hz = hr + values, *const hm = hz + values;
    vector_by_vector<Scalar>(values, [&](const auto& at) {
      const auto q = at.load(hm), r = detail::sigmoid_of(at.load(gr) + at.load(hr)),
                 z = detail::sigmoid_of(at.load(gz) + at.load(hz)), m = detail::tanh_of(at.load(gm) + r * q);
      at.store(gr, r);
      at.store(gz, z);
      at.store(gm, m);
      at.store(row.memory, q);
      at.store(row.state, m + z * (at.load(row.state_before) - m));
    });
  }
  template <class Scalar> static void backward(long values, const CellRows<Scalar>& row) {
    Scalar *const gr = row.gates, *const gz = gr + values, *const gm = gz + values;
    Scalar *const hr = row.hidden, *const hz = hr + values, *const hm = hz + values;
    vector_by_vector<Scalar>(values, [&](const auto& at) {
      const auto r = at.load(gr), z = at.load(gz), m = at.load(gm), q = at.load(row.memory), dh = at.load(row.state_gradient);
      const auto one = decltype(r + r)(1);
      const auto dm = dh * (one - z) * (one - m * m), dr = dm * q * r * (one - r),
                 dz = dh * (at.load(row.state_before) - m) * z * (one - z);
      at.store(gr, dr);
      at.store(gz, dz);
      at.store(gm, dm);
      at.store(hr, dr);
      at.store(hz, dz);
      at.store(hm, dm * r);
      at.store(row.memory, dm * r);
      at.store(row.state_gradient, dh * z);
    });
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
