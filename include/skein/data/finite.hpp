// SPDX-License-Identifier: Apache-2.0
// Values that are infinite or not a number, found where they come in: a look at the bits, so that no option of a compiler
// (-ffast-math) makes it true.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// The greatest magnitude of some values, 0 of none; infinite or not a number where one of them is.
float greatest_magnitude(std::span<const float> values);
double greatest_magnitude(std::span<const double> values);
/// Is a magnitude a number.
bool finite(double value);
/// The place of the first value that is infinite or not a number; -1 where there is none.
long first_not_finite(std::span<const float> values);
long first_not_finite(std::span<const double> values);
/// "nan", "inf" or "-inf".
std::string not_finite_text(double value);

}  // namespace skein::inline SKEIN_ABI::data::detail

#if !SKEIN_COMPILED
#include "finite.ipp"
#endif
