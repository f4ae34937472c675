// SPDX-License-Identifier: Apache-2.0
// Where each part of a loss of several outputs finds its columns: in a row of outputs, and in a row of targets.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Where a loss finds its columns.
struct LossColumns {
  long output = 0, width = 0;   ///< in a row of outputs
  long target = 0, values = 0;  ///< in a row of targets
  bool labels = false;          ///< its target is a class number
};

/// A loss of several outputs says where each of its losses is: static constexpr std::array<LossColumns, N> columns.
template <class L> concept HasLossColumns = requires {
  { L::columns[0] } -> std::convertible_to<LossColumns>;
};

namespace detail {
/// A number that is no class, for a target that is no whole number.
inline constexpr std::int32_t no_class = std::numeric_limits<std::int32_t>::min();
template <class Scalar> constexpr std::int32_t class_number(Scalar v) {
  constexpr Scalar most = static_cast<Scalar>(1 << 24);
  if (!(v >= -most && v <= most)) return no_class;
  const std::int32_t n = static_cast<std::int32_t>(v);
  return static_cast<Scalar>(n) == v ? n : no_class;
}
template <class Scalar> struct ClassNumbers {  // (count) of the first column of rows
  const Scalar* targets;
  long pitch;
  std::int32_t* labels;
  constexpr void operator()(long i) const { labels[i] = class_number(targets[i * pitch]); }
};
/// A target of that sample that is none.
[[noreturn]] inline void refuse_class_number(const std::string& sample, double value, long classes) {
  const bool whole = value > -1e15 && value < 1e15 && value == static_cast<double>(static_cast<long long>(value));
  throw ArgumentError(text("{} has the class number {}: give whole numbers from 0 to {}", sample,
                           whole ? text("{}", static_cast<long long>(value)) : text("{}", value), classes - 1));
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
