// SPDX-License-Identifier: Apache-2.0
// TensorView: data, extents, strides, device, and nothing else: trivially copyable, owns nothing. Slices, transposes and
// reshapes are views of the same memory. A strided leading axis (padded rows) stays on the vector path.
#pragma once
#include <cassert>
#include <span>
#include <type_traits>
#include <utility>

#include "../device/copy.hpp"
#include "../fwd.hpp"
#include "bound.hpp"
#include "dims.hpp"
#include "slice.hpp"

namespace skein::inline SKEIN_ABI {

/// Whatever can stand in an expression: tensors, views, and what operators make of them.
template <class T> concept TensorExpression = requires { typename std::remove_cvref_t<T>::skein_expression; };

template <class Scalar, int Rank, class Device = Cpu> struct TensorView;

/// Writes the expression into the memory of the view, in one fused pass; defined in evaluate.hpp.
template <class S, int R, class D, class E> void assign(const TensorView<S, R, D>& to, E&& expression);

/// A strided window on memory of a device. `Scalar` may be const. Row-major by convention, any strides by right.
/// Named views are re-seated by `=`, as spans are; `v.assign(e)`, `v += e` and `a(...) = e` write values.
template <class Scalar_, int Rank, class Device_> struct TensorView {
  using Element = Scalar_;
  using Scalar = std::remove_const_t<Scalar_>;
  using Device = Device_;
  using skein_expression = void;
  static constexpr int rank = Rank;
  static constexpr bool sound = true;

  Scalar_* data = nullptr;
  Dims<Rank> extents{};
  Dims<Rank> strides{};
  Device where{};

  constexpr TensorView() = default;
  constexpr TensorView(Scalar_* first, const Dims<Rank>& extents_of, const Dims<Rank>& strides_of, Device place = {})
      : data(first), extents(extents_of), strides(strides_of), where(place) {}
  constexpr TensorView(const TensorView&) = default;
  /// A view of const values out of one that may write them.
  template <class Other>
  requires(!std::is_same_v<Other, Scalar_> &&
           std::is_same_v<const Other, Scalar_>) constexpr TensorView(const TensorView<Other, Rank, Device_>& v)
      : data(v.data), extents(v.extents), strides(v.strides), where(v.where) {}

  constexpr const Dims<Rank>& shape() const { return extents; }
  constexpr long extent(int axis) const { return extents.e[axis]; }
  constexpr long size() const { return extents.count(); }
  constexpr Device device() const { return where; }
  /// Dense and row-major: size() values in a row.
  constexpr bool contiguous() const {
    long step = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      if (extents.e[i] != 1 && strides.e[i] != step) return size() == 0;
      step *= extents.e[i];
    }
    return true;
  }
  /// All axes given as integers: the value (Cpu only, checked in a debug build). Else a view; missing axes are taken whole.
  template <detail::SliceArgument... A> constexpr decltype(auto) operator()(A... a) const {
    static_assert(detail::consumed_axes<A...> <= Rank, "more indices than the tensor has axes");
    if constexpr (detail::is_element<Rank, A...>) {
      static_assert(std::is_same_v<Device, Cpu>, "a single value can be read on the host only: move the tensor with .to<Cpu>()");
      long offset = 0;
      int i = 0;
      const auto take = [&](long index) {
        if (SKEIN_CHECKED && (index < 0 || index >= extents.e[i])) skein::detail::refuse_index(index, extents.e[i], i);
        assert(index >= 0 && index < extents.e[i]);
        offset += index * strides.e[i++];
      };
      (take(static_cast<long>(a)), ...);
      return static_cast<Scalar_&>(data[offset]);
    } else if constexpr (detail::consumed_axes<A...> <= Rank) {
      constexpr int R = detail::sliced_rank<Rank, A...>;
      detail::Slicer<Rank, R> s{extents, strides};
      (s.take(a), ...);
      s.rest();
      return TensorView<Scalar_, R, Device>{data ? data + s.offset : data, s.out_extents, s.out_strides, where};
    } else {
      return TensorView(*this);
    }
  }
  /// The i-th value of a vector, the i-th sub-tensor of anything else.
  constexpr decltype(auto) operator[](long i) const { return (*this)(i); }
  /// The value of a tensor that has only one.
  constexpr Scalar item() const requires std::same_as<Device, Cpu> {
    if (size() != 1) throw ShapeError("item: the tensor has shape " + detail::shape_text(extents) + ", not one value");
    return *data;
  }
  /// The value of a tensor of any device that has only one: copies it to the host, and waits for that.
  Scalar value() const {
    if (size() != 1) throw ShapeError("value: the tensor has shape " + detail::shape_text(extents) + ", not one value");
    Scalar x;
    Copy<Cpu, Device>::run(&x, data, sizeof x, Cpu{}, where);
    return x;
  }

  /// The axes in reverse order; a matrix transposed.
  constexpr TensorView transpose() const {
    TensorView v = *this;
    for (int i = 0; i < Rank; ++i) {
      v.extents.e[i] = extents.e[Rank - 1 - i];
      v.strides.e[i] = strides.e[Rank - 1 - i];
    }
    return v;
  }
  /// The axes in a new order: axis i of the result is axis order[i] of this.
  template <std::integral... I> constexpr TensorView permute(I... order) const {
    static_assert(sizeof...(I) == Rank, "permute takes one axis for each axis of the tensor");
    TensorView v = *this;
    bool seen[Rank > 0 ? Rank : 1] = {};
    int i = 0;
    for (long axis : {static_cast<long>(order)...}) {
      const int a = detail::checked_axis(static_cast<int>(axis), Rank, "permute");
      if (seen[a]) throw ArgumentError(text("permute: axis {} is named twice", a));
      seen[a] = true;
      v.extents.e[i] = extents.e[a];
      v.strides.e[i++] = strides.e[a];
    }
    return v;
  }
  /// One axis back to front.
  constexpr TensorView reverse(int axis) const {
    const int a = detail::checked_axis(axis, Rank, "reverse");
    TensorView v = *this;
    if (size() > 0) v.data += (extents.e[a] - 1) * strides.e[a];
    v.strides.e[a] = -strides.e[a];
    return v;
  }
  /// The diagonal of a matrix, as a vector.
  constexpr TensorView<Scalar_, 1, Device> diagonal() const requires(Rank == 2) {
    return {data, {{extents.e[0] < extents.e[1] ? extents.e[0] : extents.e[1]}}, {{strides.e[0] + strides.e[1]}}, where};
  }
  /// The same values in other extents; -1 once: whatever is left. Throws ShapeError where counts differ or the view has gaps.
  template <std::integral... E> constexpr auto reshape(E... e) const {
    return reshape(Dims<static_cast<int>(sizeof...(E))>{{static_cast<long>(e)...}});
  }
  template <int R> constexpr TensorView<Scalar_, R, Device> reshape(Dims<R> to) const {
    long known = 1, open = -1;
    for (int i = 0; i < R; ++i) {
      if (to.e[i] < -1) throw ShapeError(text("reshape: an extent is {}: only -1, whatever is left, is negative", to.e[i]));
      if (to.e[i] > 0 && known > LONG_MAX / to.e[i])
        detail::throw_shapes("reshape", extents, to, "differ in their number of values");
      if (to.e[i] != -1) known *= to.e[i];
      else if (open < 0) open = i;
      else throw ShapeError("reshape: only one extent may be -1");
    }
    if (open >= 0 && known == 0) throw ShapeError("reshape: beside an extent of 0 none can be -1: any would do");
    if (open >= 0) to.e[open] = size() / known;
    if (to.count() != size()) detail::throw_shapes("reshape", extents, to, "differ in their number of values");
    if (!contiguous())
      detail::throw_shapes("reshape", extents, to, "do not share memory: the view has gaps or another order, copy() it first");
    return {data, to, row_major(to), where};
  }
  constexpr TensorView<Scalar_, 1, Device> flatten() const { return reshape(Dims<1>{{size()}}); }
  /// The values of a view without gaps.
  constexpr std::span<Scalar_> span() const requires std::same_as<Device, Cpu> {
    if (!contiguous()) throw ShapeError("span: the view has gaps or another order, copy() it first");
    return {data, static_cast<std::size_t>(size())};
  }

  /// Writes values: the expression is broadcast to these extents.
  template <class E> const TensorView& assign(E&& e) const {
    skein::assign(*this, std::forward<E>(e));
    return *this;
  }
  constexpr TensorView& operator=(const TensorView&) & = default;
  /// a(...) = e writes values.
  template <class E> const TensorView& operator=(E&& e) && {
    skein::assign(*this, std::forward<E>(e));
    return *this;
  }
  template <class E>
  requires(!std::convertible_to<E, TensorView>) TensorView& operator=(E&&) & {
    static_assert(!sizeof(E*), "a named view is re-seated by =, as a span is: write view.assign(expression)");
    return *this;
  }

  /// The leaf of the second tree.
  template <int N> SKEIN_ALWAYS_INLINE constexpr detail::BoundView<Scalar, N> bind(const Dims<N>&) const {
    return {data, detail::broadcast_strides<N>(extents, strides)};
  }
};

/// A view of memory of the host: dense, row-major.
template <class Scalar, std::integral... E> constexpr auto view_of(Scalar* data, E... e) {
  const auto d = dims(e...);
  return TensorView<Scalar, static_cast<int>(sizeof...(E)), Cpu>{data, d, row_major(d), {}};
}

}  // namespace skein::inline SKEIN_ABI
