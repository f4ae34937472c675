// SPDX-License-Identifier: Apache-2.0
// xtensor beside skein's tensors, without copies: as_xtensor() shows a tensor of the host (or a view, strides and all) as an
// xtensor expression, from_xtensor() shows an xtensor container as a view, and any xtensor expression assigns into a tensor.
// Not for nvcc, which cannot compile xtensor.
#pragma once
#include <array>
#include <type_traits>
#include <xtensor/xadapt.hpp>
#include <xtensor/xexpression.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>

#include "tensor/tensor.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
template <class S, int R> auto adapt_xtensor(const TensorView<S, R, Cpu>& v) {
  std::array<std::size_t, static_cast<std::size_t>(R)> shape;
  std::array<std::ptrdiff_t, static_cast<std::size_t>(R)> strides;
  for (int i = 0; i < R; ++i) {
    const auto u = static_cast<std::size_t>(i);
    if (v.strides.e[i] < 0) throw ShapeError(text("as_xtensor: the view runs backwards along axis {}: copy() it first", i));
    shape[u] = static_cast<std::size_t>(v.extents.e[i]);
    strides[u] = v.extents.e[i] == 1 ? 0 : v.strides.e[i];  // xtensor's convention: no stride where nothing is stepped over
  }
  return xt::adapt(v.data, static_cast<std::size_t>(v.size()), xt::no_ownership(), shape, strides);
}
}  // namespace detail

/// The memory of the view as an xtensor expression, which reads and writes it. Views must not run backwards.
template <class S, int R> auto as_xtensor(const TensorView<S, R, Cpu>& v) {
  // Not the adaptor: it takes its memory for one piece where a number, or another expression of its shape, is written to it.
  auto whole = detail::adapt_xtensor(v);
  std::array<std::size_t, 1> reach{1};
  for (int i = 0; i < R; ++i)
    reach[0] =
        reach[0] == 0 || v.extents.e[i] == 0 ? 0 : reach[0] + static_cast<std::size_t>((v.extents.e[i] - 1) * v.strides.e[i]);
  auto shape = whole.shape();
  auto strides = whole.strides();
  return xt::strided_view<xt::layout_type::dynamic>(xt::adapt(v.data, reach[0], xt::no_ownership(), reach), std::move(shape),
                                                    std::move(strides), 0, xt::layout_type::dynamic);
}
template <class S, int R> auto as_xtensor(Tensor<S, R, Cpu>& t) { return detail::adapt_xtensor(t.view()); }
template <class S, int R> auto as_xtensor(const Tensor<S, R, Cpu>& t) { return detail::adapt_xtensor(t.view()); }
template <class S, int R> void as_xtensor(Tensor<S, R, Cpu>&& t) = delete;  // the memory would be gone

/// An xtensor container (xtensor, xtensor_fixed, an adaptor, a strided view of one) as a view of its memory.
template <int Rank, class X> auto from_xtensor(X& x) {
  using S = std::remove_pointer_t<decltype(x.data())>;
  if (x.dimension() != static_cast<std::size_t>(Rank))
    throw ShapeError(text("from_xtensor: the array has rank {}, rank {} was asked for", x.dimension(), Rank));
  Dims<Rank> extents, strides;
  for (int i = 0; i < Rank; ++i) {
    extents.e[i] = static_cast<long>(x.shape()[static_cast<std::size_t>(i)]);
    strides.e[i] = static_cast<long>(x.strides()[static_cast<std::size_t>(i)]);
  }
  return TensorView<S, Rank, Cpu>(x.data() + x.data_offset(), extents, strides);
}

/// Lets `tensor = xtensor_expression` and `Tensor<float, 2> t(xtensor_expression)` work. A new tensor is written directly; an
/// assignment goes through a temporary, since nobody knows what the expression reads: xt::noalias(as_xtensor(t)) = e does not.
template <class E>
requires std::is_base_of_v<xt::xexpression<E>, E>
struct ForeignExpression<E> {
  static constexpr int rank = [] {
    if constexpr (requires { std::tuple_size<typename E::shape_type>::value; })
      return static_cast<int>(std::tuple_size<typename E::shape_type>::value);
    else return -1;  // known at run time only
  }();
  /// The shape for a new tensor of the given rank.
  template <int Rank> static Dims<Rank> shape_as(const E& e) {
    Dims<Rank> d;
    if (e.dimension() != static_cast<std::size_t>(Rank))
      throw ShapeError(text("Tensor: an xtensor expression of rank {} does not make a tensor of rank {}", e.dimension(), Rank));
    for (int i = 0; i < Rank; ++i) d.e[i] = static_cast<long>(e.shape()[static_cast<std::size_t>(i)]);
    return d;
  }
  template <class S, int R> static void fill(const TensorView<S, R, Cpu>& to, const E& e) {
    auto target = detail::adapt_xtensor(to);
    xt::noalias(target) = e;
  }
  template <class S, int R> static void assign(const TensorView<S, R, Cpu>& to, const E& e) {
    bool fits = e.dimension() <= static_cast<std::size_t>(R);
    for (std::size_t i = 0; fits && i < e.dimension(); ++i) {
      const long have = static_cast<long>(e.shape()[i]), want = to.extents.e[static_cast<std::size_t>(R) - e.dimension() + i];
      fits = have == want || have == 1;
    }
    if (!fits) {
      std::array<long, 32> shape{};
      for (std::size_t i = 0; i < e.dimension() && i < 32; ++i) shape[i] = static_cast<long>(e.shape()[i]);
      detail::throw_shapes("assignment", shape.data(), static_cast<int>(e.dimension()), to.extents.e, R,
                           "differ: the left is that of the xtensor expression, and does not broadcast to its target");
    }
    Tensor<std::remove_const_t<S>, R, Cpu> temporary(to.extents);  // the expression may read the target, in any order
    auto target = detail::adapt_xtensor(temporary.view());
    xt::noalias(target) = xt::broadcast(e, target.shape());
    skein::assign(to, temporary);
  }
};

}  // namespace skein::inline SKEIN_ABI
