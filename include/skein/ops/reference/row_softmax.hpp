// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over rows in plain loops: the oracle of the tests.
#pragma once
#include <cmath>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops::reference {

/// Softmax of each of the rows, or its logarithm; n values a row, rows `pitch` apart, whose gaps stay as they are.
template <bool Log, class Scalar> void row_softmax(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
  for (long r = 0; r < rows; ++r, x += pitch, y += pitch) {
    Scalar top = x[0], total = 0;
    for (long c = 1; c < n; ++c) top = x[c] > top ? x[c] : top;
    for (long c = 0; c < n; ++c) {
      const Scalar e = std::exp(x[c] - top);
      total += e;
      y[c] = Log ? x[c] - top : e;
    }
    const Scalar log_total = std::log(total);
    for (long c = 0; c < n; ++c) y[c] = Log ? y[c] - log_total : y[c] / total;
  }
}

/// The gradient of row_softmax, from its output y.
template <bool Log, class Scalar>
void row_softmax_backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
  for (long r = 0; r < rows; ++r, y += pitch, dy += pitch, dx += pitch) {
    Scalar sum = 0;
    for (long c = 0; c < n; ++c) sum += Log ? dy[c] : dy[c] * y[c];
    for (long c = 0; c < n; ++c) dx[c] = Log ? dy[c] - std::exp(y[c]) * sum : y[c] * (dy[c] - sum);
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::reference
