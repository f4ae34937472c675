// SPDX-License-Identifier: Apache-2.0
// Normalisation layers on the inputs of fixtures/make_norm_loss_optim.py: what comes out is PyTorch's.
#pragma once
#include <vector>

#include "apart.hpp"
#include "layer_harness.hpp"

namespace support {

/// What PyTorch's layer gave; dbias is empty where it has none.
struct ExpectedNorm {
  const std::vector<double>&y, &dx, &dweight;
  std::vector<double> dbias = {};
};

template <class L, class In, class Scalar> void norm_follows(long batch, int workers, const ExpectedNorm& expected) {
  INFO(workers << " workers, " << sizeof(Scalar) << " bytes");
  LayerHarness<L, In, Scalar> h(batch, workers);
  h.set_parameter(0, [](long i) { return 1 + 0.3 * wave(i, 0.5); });
  if constexpr (h.info.entries() > 1) h.set_parameter(1, [](long i) { return wave(i, 0.8); });
  h.set_x([](long b, long i) { return 2 * wave(b * In::count + i, 0.7, 0.1) + 1; });
  h.set_dy([](long b, long i) { return wave(b * In::count + i, 1.3); });
  h.forward();
  h.backward();
  std::vector<double> y, dx, dweight, dbias;
  for (long b = 0; b < batch; ++b)
    for (long i = 0; i < In::count; ++i) {
      y.push_back(static_cast<double>(h.y_at(b, i)));
      dx.push_back(static_cast<double>(h.dx_at(b, i)));
    }
  for (long i = 0; i < In::extents.last(); ++i) {
    dweight.push_back(static_cast<double>(h.gradient_at(0, i)));
    if constexpr (h.info.entries() > 1) dbias.push_back(static_cast<double>(h.gradient_at(1, i)));
  }
  CHECK(test::first_apart<Scalar>(y, expected.y, 64) == -1);
  CHECK(test::first_apart<Scalar>(dx, expected.dx, 64) == -1);
  CHECK(test::first_apart<Scalar>(dweight, expected.dweight, 64) == -1);
  CHECK(test::first_apart<Scalar>(dbias, expected.dbias, 64) == -1);
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}

/// In both scalar types, by one worker and by three.
template <class L, class In> void norm_follows(long batch, const ExpectedNorm& expected) {
  for (const int workers : {1, 3}) {
    norm_follows<L, In, double>(batch, workers, expected);
    norm_follows<L, In, float>(batch, workers, expected);
  }
}

}  // namespace support
