// SPDX-License-Identifier: Apache-2.0
// y = x W + b and its gradients in plain loops over a matrix product that is given: the oracle of the tests with the plain one,
// and the path of large weights with a library's.
//
//     x (N, In), w (In, Out), b (Out), y (N, Out); N samples: batch; n a sample, o an output; g arguments
#pragma once
#include "../dense_types.hpp"
#include "gemm.hpp"

namespace skein::inline SKEIN_ABI::ops::reference {

/// The plain matrix product as a policy.
struct PlainGemm {
  template <class... Args> static void run(Args... args) { gemm(args...); }
};

/// y = x W + b and its gradients by three products of Gemm. x is (batch, In), y is (batch, Out), both padded to row_pitch.
template <class Scalar, int In, int Out, class Gemm = PlainGemm> struct Dense {
  static constexpr long x_pitch = row_pitch(In), pitch = row_pitch(Out);

  /// Adds the bias (where there is one) and applies Finish in the pass behind the product.
  template <class Finish>
  static void forward(long batch, const Scalar* x, const Scalar* w, const Scalar*, const Scalar* bias, Scalar* y) {
    Gemm::run(Transpose::no, Transpose::no, batch, long(Out), long(In), Scalar(1), x, x_pitch, w, pitch, Scalar(0), y, pitch);
    for (long n = 0; n < batch; ++n)
      for (long o = 0; o < Out; ++o) y[n * pitch + o] = Finish{}(bias ? y[n * pitch + o] + bias[o] : y[n * pitch + o]);
  }
  static void input_gradient(long batch, const Scalar* dy, const Scalar* w, const Scalar*, Scalar*, Scalar* dx) {
    Gemm::run(Transpose::no, Transpose::yes, batch, long(In), long(Out), Scalar(1), dy, pitch, w, pitch, Scalar(0), dx, x_pitch);
  }
  static void gradients(const DenseGradients<Scalar>& g, Share share = {}) {
    const long blocks = (Out + 15) / 16, lo = blocks * share.index / share.count * 16;
    const long end = blocks * (share.index + 1) / share.count * 16, hi = end < Out ? end : long(Out);
    if (lo >= hi) return;
    Gemm::run(Transpose::yes, Transpose::no, long(In), hi - lo, g.batch, Scalar(1), g.x, x_pitch, g.dy + lo, pitch,
              g.accumulate ? Scalar(1) : Scalar(0), g.dw + lo, pitch);
    if (!g.db) return;
    if (!g.accumulate)
      for (long o = lo; o < hi; ++o) g.db[o] = 0;
    for (long n = 0; n < g.batch; ++n)
      for (long o = lo; o < hi; ++o) g.db[o] += g.dy[n * pitch + o];
  }
  static void pack_weights(long, long, const Scalar*, Scalar*) {}
};

}  // namespace skein::inline SKEIN_ABI::ops::reference
