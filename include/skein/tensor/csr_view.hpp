// SPDX-License-Identifier: Apache-2.0
// CsrView: a sparse matrix in compressed rows as its extents and three arrays, without ownership; what kernels take.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI {

/// Where rows begin: at least 32 bits, else as wide as the column indices.
template <class Index> using CsrOffset = std::conditional_t<(sizeof(Index) < 4), std::int32_t, Index>;

/// Row r has the entries [offsets[r], offsets[r + 1]): columns in rising order, and their values. A pattern (Scalar void) has
/// ones.
template <class Scalar, class Device = Cpu, class Index = std::int32_t> struct CsrView {
  static constexpr bool pattern = std::is_void_v<Scalar>;
  using Offset = CsrOffset<Index>;
  long rows = 0, columns = 0, entries = 0;
  const Offset* offsets = nullptr;  // rows + 1
  const Index* indices = nullptr;   // entries
  const Scalar* values = nullptr;   // entries; null for a pattern
  Device where{};
};

}  // namespace skein::inline SKEIN_ABI
