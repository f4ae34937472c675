// SPDX-License-Identifier: Apache-2.0
// A fmt formatter for tensors, views and expressions of the host: fmt::format("{}", a), fmt::format("{:.3f}", a * 2).
// The only header that needs fmt, 9 or newer; no other includes it. Empty under nvcc, which cannot compile fmt 9 in C++20: use
// to_text() of print.hpp there.
#pragma once
#include "print.hpp"

#ifndef __CUDACC__
#if __has_include(<fmt/format.h>)
#include <fmt/format.h>
#endif
#if !defined(FMT_VERSION) || FMT_VERSION < 90000
#error "skein/tensor/format.hpp needs fmt 9 or newer: apt install libfmt-dev, or use to_text() of skein/tensor/print.hpp"
#else

// A tensor is a range, too, of which <fmt/ranges.h> would have another formatter.
FMT_BEGIN_NAMESPACE
template <class T, class Char> struct is_range;
template <class E, class Char>
requires skein::TensorExpression<E>
struct is_range<E, Char> {
  static constexpr bool value = false;
};
FMT_END_NAMESPACE

template <class E>
requires skein::TensorExpression<E>
struct fmt::formatter<E> {
  std::string_view format_;  // of the text that is formatted: it lives until format() has returned
  constexpr auto parse(fmt::format_parse_context& context) {
    const auto begin = context.begin();
    auto it = begin;
    while (it != context.end() && *it != '}') ++it;
    format_ = std::string_view(begin, static_cast<std::size_t>(it - begin));
    return it;
  }
  template <class Context> auto format(const E& e, Context& context) const {
    auto out = context.out();
    for (char c : skein::to_text(e, format_)) *out++ = c;
    return out;
  }
};
#endif
#endif
