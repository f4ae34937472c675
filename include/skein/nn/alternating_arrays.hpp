// SPDX-License-Identifier: Apache-2.0
// The arrays of scratch memory that the edges of a Sequential and their gradients share (nn/sequential.hpp).
#pragma once
#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Two arrays that edges, and in backward their gradients, take by turns, and a third for edges that are made again: each as wide
/// as the widest that it is taken for. Until place() an offset is the number of the array.
struct AlternatingArrays {
  static constexpr int third = 2;
  long widths[3] = {};

  constexpr ActivationOffset take(int array, long pitch) {
    const long line = whole_line(pitch);
    if (line > widths[array]) widths[array] = line;
    return {array, line};
  }
  constexpr long total() const { return widths[0] + widths[1] + widths[third]; }
  constexpr void place(ActivationOffset& s) const {
    if (s.width > 0) s.offset = s.offset == 0 ? 0 : s.offset == 1 ? widths[0] : widths[0] + widths[1];
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
