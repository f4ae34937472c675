// SPDX-License-Identifier: Apache-2.0
// Face of dropout: dispatches on the device tag.
#pragma once
#include "../device/device.hpp"
#include "cpu/dropout.hpp"
#include "reference/dropout.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// y = x / (1 - rate) where the mask keeps, else 0; forward and backward alike. x and y may be the same array. Rate 0 copies.
template <class Scalar> void dropout(Cpu, const DropoutShape& shape, double rate, const Scalar* x, Scalar* y) {
  cpu::dropout(shape, rate, x, y);
}

}  // namespace skein::inline SKEIN_ABI::ops
