// SPDX-License-Identifier: Apache-2.0
// The bodies of data_check.hpp.
#pragma once
#include "data_check.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE std::string shape_text(const Extents& e) {
  std::string text = e.tokens ? "Tokens<" : "Shape<";
  for (int i = 0; i < e.rank; ++i) text += (i ? ", " : "") + std::to_string(e[i]);
  return text + ">";
}

SKEIN_INLINE void check_extents(const Extents& given, const Extents& wanted, const std::string& whose, const char* how) {
  const auto extent = [](const Extents& e, int i) { return i < e.rank ? e[i] : 1; };
  bool same = wanted.flat() ? given.count() == wanted.count() : true;
  for (int i = 0; i < 4 && !wanted.flat(); ++i) same = same && extent(given, i) == extent(wanted, i);
  if (same) return;
  std::string text = whose + " are " + shape_text(given) + ", the model takes " + shape_text(wanted);
  if (given.count() == wanted.count() && given.flat()) {
    text += std::string(": if the values are in that order, say so: ") + how;
    for (int i = 0; i < wanted.rank; ++i) text += (i ? " x " : "") + std::to_string(wanted[i]);
  } else if (given.rank == 3 && wanted.rank == 3 && given.count() == wanted.count()) {
    text += ": images are (height, width, channels), the channels last";
  }
  throw ShapeError(text);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
