// SPDX-License-Identifier: Apache-2.0
// Text of tensors: to_text() and operator<<; those of another device are copied to the host first. Long axes are shortened to
// their ends. Kept apart, so that the core includes no stream; without fmt, which nvcc cannot compile in C++20 (format.hpp has
// its formatter).
#pragma once
#include <charconv>
#include <clocale>
#include <cstdio>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>

#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
inline constexpr long print_edge = 3, print_whole = 8;

template <class S, class Write>
void print_axes(std::string& out, const S* data, const Dims<8>& e, const Dims<8>& s, int axis, int rank, const Write& write) {
  if (axis == rank) return write(out, *data);
  out += '[';
  const long n = e.e[axis];
  for (long i = 0; i < n; ++i) {
    if (i > 0) {
      out += ',';
      if (axis == rank - 1) out += ' ';
      else out.append(static_cast<std::size_t>(rank - 1 - axis), '\n').append(static_cast<std::size_t>(axis + 1), ' ');
    }
    if (n > print_whole && i == print_edge) {
      out += "...";
      i = n - print_edge - 1;
      continue;
    }
    print_axes(out, data + i * s.e[axis], e, s, axis + 1, rank, write);
  }
  out += ']';
}

/// Appends the number as printf's format says, however long that is.
template <class V> void append_formatted(std::string& out, const char* format, V x) {
  const int length = std::snprintf(nullptr, 0, format, x);
  if (length < 0) throw ArgumentError("to_text: '" + std::string(format + 1) + "' is no format of a number: it is too wide");
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(length) + 1);
  std::snprintf(out.data() + before, static_cast<std::size_t>(length) + 1, format, x);
  out.pop_back();
  if constexpr (std::is_floating_point_v<V>) {  // a locale may have a comma there
    const std::string point = std::localeconv()->decimal_point;
    if (const std::size_t at = out.find(point, before); point != "." && at != out.npos) out.replace(at, point.size(), ".");
  }
}

/// Flags, a width, a precision, as printf takes them before the conversion.
inline bool is_number_format(std::string_view f) {
  const auto skip = [&](std::string_view these) { f.remove_prefix(std::min(f.size(), f.find_first_not_of(these))); };
  skip("+- #0");
  skip("0123456789");
  if (!f.empty() && f.front() == '.') {
    f.remove_prefix(1);
    skip("0123456789");
  }
  return f.empty();
}
/// One value: the shortest text that reads back as the same, or by a format such as ".3f" or "8.2e". The sign of what is not a
/// number says nothing, and is left out.
template <class S> void print_value(std::string& out, S x, std::string_view format) {
  if constexpr (std::is_floating_point_v<S>)
    if (x != x) x = std::numeric_limits<S>::quiet_NaN();
  if constexpr (std::is_same_v<S, bool>) {
    out += x ? "true" : "false";
  } else if (format.empty()) {
    char text[64];
    out.append(text, std::to_chars(text, text + sizeof text, x).ptr);
  } else {
    const bool spoken = format.back() >= 'A';  // ends in a conversion
    std::string f = "%" + std::string(spoken ? format.substr(0, format.size() - 1) : format);
    if (!is_number_format(std::string_view(f).substr(1)))
      throw ArgumentError("to_text: '" + std::string(format) + "' is no format of a number: .3f, 8.2e and 5 are");
    const char kind = spoken ? format.back() : std::is_floating_point_v<S> ? 'g' : 'd';
    if (std::string_view(std::is_floating_point_v<S> ? "fFeEgGa" : "dxX").find(kind) == std::string_view::npos)
      throw ArgumentError("to_text: '" + std::string(format) + "' is no format of these values");
    if constexpr (std::is_floating_point_v<S>) {
      f += kind;
      append_formatted(out, f.c_str(), static_cast<double>(x));
    } else {
      f += "ll";
      f += kind == 'd' && std::is_unsigned_v<S> ? 'u' : kind;
      append_formatted(out, f.c_str(), static_cast<std::conditional_t<std::is_unsigned_v<S>, unsigned long long, long long>>(x));
    }
  }
}

template <class S, int R> std::string text_of(const TensorView<S, R, Cpu>& v, std::string_view format) {
  static_assert(R <= 8, "printing goes up to rank 8");
  Dims<8> e, s;
  for (int i = 0; i < R; ++i) {
    e.e[i] = v.extents.e[i];
    s.e[i] = v.strides.e[i];
  }
  std::string out;
  print_axes(out, v.data, e, s, 0, R, [&](std::string& to, const auto& x) { print_value(to, x, format); });
  return out;
}
}  // namespace detail

/// [[1, 2],\n [3, 4]]; `format`, for each value, is fmt's or printf's without its frame: ".3f".
template <TensorExpression E> std::string to_text(E&& e, std::string_view format = "") {
  using T = std::remove_cvref_t<E>;
  using S = typename T::Scalar;
  if constexpr (!std::is_same_v<typename T::Device, Cpu>) {
    return to_text(to_host(e), format);
  } else if constexpr (detail::IsView<T>::value) {
    return detail::text_of(TensorView<const S, T::rank, Cpu>(e), format);
  } else if constexpr (requires { e.view(); }) {
    return detail::text_of(std::as_const(e).view(), format);
  } else {
    const Tensor<S, T::rank, Cpu> whole(std::forward<E>(e));
    return detail::text_of(whole.view(), format);
  }
}

template <TensorExpression E> std::ostream& operator<<(std::ostream& out, const E& e) { return out << to_text(e); }

}  // namespace skein::inline SKEIN_ABI
