// SPDX-License-Identifier: Apache-2.0
// Text of tensors of the host: to_text(), operator<< and a fmt formatter (`{}`, `{:.3f}`: the format of each value). Long axes
// are shortened to their ends. Kept apart, so that the core includes neither fmt nor a stream.
#pragma once
#include <fmt/format.h>

#include <iosfwd>
#include <ostream>
#include <string>

#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
inline constexpr long print_edge = 3, print_whole = 8;

template <class S, class Write> void print_axes(std::string& out, const S* data, const Dims<8>& e, const Dims<8>& s, int axis, int rank, const Write& write) {
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

template <class S, int R> std::string text_of(const TensorView<S, R, Cpu>& v, std::string_view format) {
  static_assert(R <= 8, "printing goes up to rank 8");
  Dims<8> e, s;
  for (int i = 0; i < R; ++i) {
    e.e[i] = v.extents.e[i];
    s.e[i] = v.strides.e[i];
  }
  std::string out, one = "{:" + std::string(format) + "}";
  print_axes(out, v.data, e, s, 0, R, [&](std::string& to, const auto& x) { fmt::format_to(std::back_inserter(to), fmt::runtime(one), x); });
  return out;
}
}  // namespace detail

/// [[1, 2],\n [3, 4]]; `format` is fmt's, for each value ("{:.3f}" without braces and colon).
template <TensorExpression E> std::string to_text(E&& e, std::string_view format = "") {
  using T = std::remove_cvref_t<E>;
  static_assert(std::is_same_v<typename T::Device, Cpu>, "a tensor is printed on the host: move it with .to<Cpu>() first");
  using S = typename T::Scalar;
  if constexpr (detail::IsView<T>::value) {
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

template <class E> requires skein::TensorExpression<E> struct fmt::formatter<E> {
  std::string format_;
  constexpr auto parse(fmt::format_parse_context& context) {
    auto it = context.begin();
    for (; it != context.end() && *it != '}'; ++it) format_ += *it;
    return it;
  }
  template <class Context> auto format(const E& e, Context& context) const {
    auto out = context.out();
    for (char c : skein::to_text(e, format_)) *out++ = c;
    return out;
  }
};
