// SPDX-License-Identifier: Apache-2.0
// What one step of a recurrent cell does to one sample, in vectors: Elman's with tanh, LSTM (Hochreiter and Schmidhuber, 1997)
// and GRU (Cho et al., 2014, with the reset gate behind the product, as PyTorch and cuDNN have it). A step keeps `kept` arrays of
// H values behind each other: the gates in PyTorch's order, what backward needs beside them, and h at `state`.
#pragma once
#include <cmath>

#include "map.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
struct SigmoidOf {
  template <class T> T operator()(const T& x) const {
    using std::exp;
    return T(1) / (T(1) + exp(-x));
  }
};
struct TanhOf {
  template <class T> T operator()(const T& x) const {
    using std::tanh;
    return tanh(x);
  }
};
}  // namespace detail

/// h = tanh(gate).
struct RnnCell {
  static constexpr int gates = 1, kept = 1, state = 0, memory = 0;
  static constexpr bool splits = false;  ///< the hidden state's product with the last gate stays by itself, at `memory`
  template <class Scalar> static void forward(long n, Scalar* now, const Scalar*) { map(detail::TanhOf{}, n, now, now); }
  template <class Scalar> static void backward(long n, Scalar* now, const Scalar*, Scalar* dh, Scalar*) {
    detail::each_value([](auto h, auto d) { return d * (decltype(h)(1) - h * h); }, n, now, now, dh);
  }
};

/// i, f, o = sigmoid, g = tanh of their gates; c = f c' + i g; h = o tanh(c).
struct LstmCell {
  static constexpr int gates = 4, kept = 6, memory = 4, state = 5;
  static constexpr bool splits = false;
  /// `now`: i, f, g, o before their functions; `before`: the step before.
  template <class Scalar> static void forward(long n, Scalar* now, const Scalar* before) {
    Scalar *const i = now, *const f = now + n, *const g = now + 2 * n, *const o = now + 3 * n, *const c = now + 4 * n;
    map(detail::SigmoidOf{}, 2 * n, i, i);
    map(detail::TanhOf{}, n, g, g);
    map(detail::SigmoidOf{}, n, o, o);
    detail::each_value([](auto vi, auto vf, auto vg, auto vc) { return vf * vc + vi * vg; }, n, c, i, f, g, before + memory * n);
    detail::each_value([](auto vo, auto vc) { return vo * detail::TanhOf{}(vc); }, n, now + state * n, o, c);
  }
  /// Gates become their gradients. dh: in, of h; afterwards what of it goes to the step before past the products: nothing. dc: of
  /// c, from the step behind; afterwards of the step before.
  template <class Scalar> static void backward(long n, Scalar* now, const Scalar* before, Scalar* dh, Scalar* dc) {
    Scalar *const i = now, *const f = now + n, *const g = now + 2 * n, *const o = now + 3 * n, *const c = now + 4 * n;
    detail::each_value(
        [](auto d, auto h, auto vo, auto vc) {
          const auto t = detail::TanhOf{}(vc);
          return d + h * vo * (decltype(t)(1) - t * t);
        },
        n, dc, dc, dh, o, c);
    detail::each_value([](auto h, auto vo, auto vc) { return h * detail::TanhOf{}(vc)*vo * (decltype(vo)(1) - vo); }, n, o, dh, o,
                       c);
    detail::each_value([](auto d, auto vi, auto vg) { return d * vi * (decltype(vg)(1) - vg * vg); }, n, dh, dc, i, g);
    detail::each_value([](auto d, auto vi, auto vg) { return d * vg * vi * (decltype(vi)(1) - vi); }, n, i, dc, i, g);
    map([](auto v) { return v; }, n, dh, g);
    map([](auto v) { return v; }, n, dc, dh);
    detail::each_value([](auto d, auto vf) { return d * vf; }, n, dc, dc, f);
    detail::each_value([](auto d, auto vf, auto vc) { return d * vc * vf * (decltype(vf)(1) - vf); }, n, f, dh, f,
                       before + memory * n);
  }
};

/// r, z = sigmoid, m = tanh(gate + r q) for q the hidden state's part of it; h = (1 - z) m + z h'.
struct GruCell {
  static constexpr int gates = 3, kept = 5, memory = 3, state = 4;
  static constexpr bool splits = true;
  template <class Scalar> static void forward(long n, Scalar* now, const Scalar* before) {
    Scalar *const r = now, *const z = now + n, *const m = now + 2 * n, *const q = now + memory * n;
    map(detail::SigmoidOf{}, 2 * n, r, r);
    detail::each_value([](auto a, auto vr, auto vq) { return detail::TanhOf{}(a + vr * vq); }, n, m, m, r, q);
    detail::each_value([](auto vz, auto vm, auto h) { return vm + vz * (h - vm); }, n, now + state * n, z, m, before + state * n);
  }
  /// The same; q becomes its gradient too, and dh what goes past the products.
  template <class Scalar> static void backward(long n, Scalar* now, const Scalar* before, Scalar* dh, Scalar*) {
    Scalar *const r = now, *const z = now + n, *const m = now + 2 * n, *const q = now + memory * n;
    const Scalar* const h = before + state * n;
    Scalar* const h_now = now + state * n;  // nobody reads it any more: holds z's gradient
    detail::each_value([](auto d, auto vz, auto vm, auto vh) { return d * (vh - vm) * vz * (decltype(vz)(1) - vz); }, n, h_now,
                       dh, z, m, h);
    detail::each_value(
        [](auto d, auto vz, auto vm) {
          using V = decltype(vz);
          return d * (V(1) - vz) * (V(1) - vm * vm);
        },
        n, m, dh, z, m);
    detail::each_value([](auto d, auto vz) { return d * vz; }, n, dh, dh, z);
    map([](auto v) { return v; }, n, h_now, z);
    detail::each_value([](auto a, auto vr) { return a * vr; }, n, h_now, m, r);
    detail::each_value([](auto a, auto vr, auto vq) { return a * vq * vr * (decltype(vr)(1) - vr); }, n, r, m, r, q);
    map([](auto v) { return v; }, n, h_now, q);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
