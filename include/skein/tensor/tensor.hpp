// SPDX-License-Identifier: Apache-2.0
// Tensor: owns dense row-major memory on a device. It moves; copy() says that it copies. Braces hold values
// (`Tensor<float, 2> a{{1, 2}, {3, 4}}`), extents come by name (`zeros<float>(2, 3)`, `Tensor<float, 2> a(dims(2, 3))`).
#pragma once
#include <memory>
#include <span>

#include "../device/copy.hpp"
#include "evaluate.hpp"
#include "functions.hpp"
#include "nested_list.hpp"

namespace skein::inline SKEIN_ABI {

template <class Scalar, int Rank, class Device = Cpu> class Tensor;

/// An array of values on a device, dense and row-major, zero at first. Rank 0 holds one value.
template <class Scalar_, int Rank, class Device_> class Tensor {
  static_assert(std::is_arithmetic_v<Scalar_>, "a tensor holds arithmetic scalars: float, double, integers or bool");
  static_assert(Rank >= 0, "the rank of a tensor is not negative");

 public:
  using Scalar = Scalar_;
  using Device = Device_;
  using View = TensorView<Scalar, Rank, Device>;
  using ConstView = TensorView<const Scalar, Rank, Device>;
  using skein_expression = void;
  static constexpr int rank = Rank;
  static constexpr bool sound = true;

  /// No values; takes on the extents of the first thing that is assigned to it.
  Tensor() : Tensor(Dims<Rank>{}) {}
  /// Zeros. A template, so that braces are never taken for extents.
  template <std::same_as<Dims<Rank>> D> explicit Tensor(D extents, Device where = {})
      : memory_(checked_count(extents), where), extents_(extents) {}
  /// Nested lists of values; throws ShapeError where they are ragged.
  Tensor(typename detail::NestedList<Scalar, Rank>::type values, Device where = {}) requires(Rank > 0)
      : Tensor(list_shape(values), where) {
    fill_list(values);
  }
  /// C arrays and std::arrays, nested as deep as the rank.
  template <class A>
  requires(detail::Nested<A>::rank == Rank && Rank > 0) explicit Tensor(const A& values, Device where = {})
      : Tensor(list_shape(values), where) {
    fill_list(values);
  }
  /// Values in row-major order: vectors, spans. Throws ShapeError where their number differs.
  Tensor(std::span<const Scalar> values, const Dims<Rank>& extents, Device where = {}) : Tensor(extents, where) {
    if (static_cast<long>(values.size()) != size()) {
      const long n = static_cast<long>(values.size());
      detail::throw_shapes("Tensor", &n, 1, extents.e, Rank, "differ in their number of values");
    }
    fill(values.data());
  }
  explicit Tensor(std::span<const Scalar> values, Device where = {}) requires(Rank == 1)
      : Tensor(values, Dims<1>{{static_cast<long>(values.size())}}, where) {}
  /// Evaluates an expression.
  template <TensorExpression E>
  requires(!std::same_as<std::remove_cvref_t<E>, Tensor>) Tensor(E&& e) {
    if constexpr (detail::may_assign<Scalar, Rank, Device, E>()) {
      const auto node = detail::leaf(std::forward<E>(e));
      using Node = std::remove_cvref_t<decltype(node)>;
      Dims<Rank> extents = detail::padded<Rank>(node.shape(), 1);
      if constexpr (std::is_same_v<typename Node::Device, Device>) *this = Tensor(extents, node.device());
      else *this = Tensor(extents);
      detail::evaluate(view(), node, nullptr);
    }
  }
  /// Evaluates an expression of another library (xtensor.hpp).
  template <Foreign E> Tensor(const E& e) : Tensor(ForeignExpression<E>::template shape_as<Rank>(e)) {
    ForeignExpression<E>::fill(view(), e);
  }

  template <std::integral... N>
  requires(sizeof...(N) > 1 && sizeof...(N) == Rank) explicit Tensor(N...) {
    static_assert(sizeof...(N) == 0, "Tensor: extents are given as sk::dims(2, 3), values in braces: {{1, 2}, {3, 4}}");
  }
  template <int Other>
  requires(Other != Rank) explicit Tensor(const Dims<Other>&, Device = {}) {
    static_assert(Other == Rank, "Tensor: these extents are of another rank than the tensor: sk::dims takes one number an axis");
  }
  Tensor(const Tensor&) = delete;  // copy() says so
  Tensor(Tensor&& o) noexcept : memory_(std::move(o.memory_)), extents_(std::exchange(o.extents_, Dims<Rank>{})) {}
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(extents_, o.extents_);
    return *this;
  }
  /// Writes values into this tensor's memory, broadcast to its extents; a tensor without values takes on the expression's.
  Tensor& operator=(const Tensor& o) { return write(o.view()); }
  template <class E>
  requires((TensorExpression<E> && !std::same_as<std::remove_cvref_t<E>, Tensor>) || Number<E> || Foreign<E>) Tensor& operator=(
      E&& e) {
    if constexpr (detail::may_assign<Scalar, Rank, Device, E>()) write(std::forward<E>(e));
    return *this;
  }

  Tensor copy() const {
    Tensor t(extents_, device());
    if (size() > 0) Memory<Device>::copy(t.data(), data(), static_cast<std::size_t>(size()) * sizeof(Scalar), device());
    return t;
  }
  /// The same values on another device (or another ordinal); returns when they are there.
  template <class To> Tensor<Scalar, Rank, To> to(To where = {}) const {
    Tensor<Scalar, Rank, To> t(extents_, where);
    Copy<To, Device>::run(t.data(), data(), static_cast<std::size_t>(size()) * sizeof(Scalar), where, device());
    return t;
  }

  Scalar* data() { return memory_.data(); }
  const Scalar* data() const { return memory_.data(); }
  const Dims<Rank>& shape() const& { return extents_; }
  Dims<Rank> shape() const&& { return extents_; }
  long extent(int axis) const { return extents_.e[axis]; }
  long size() const { return memory_.data() ? extents_.count() : 0; }
  bool empty() const { return size() == 0; }
  Device device() const { return memory_.where(); }

  View view() & { return check_there(), View{data(), extents_, row_major(extents_), device()}; }
  ConstView view() const& { return check_there(), ConstView{data(), extents_, row_major(extents_), device()}; }
  ConstView view() const&& = delete;  // of a temporary: its memory would be gone
  operator View() & { return view(); }
  operator ConstView() const& SKEIN_LIFETIME_BOUND { return view(); }  // of a temporary: until the statement ends, f(eval(a + b))
  std::span<Scalar> span() & requires std::same_as<Device, Cpu> { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const Scalar> span() const&& = delete;  // would outlive its memory: give the tensor a name
  std::span<const Scalar> span() const& requires std::same_as<Device, Cpu> { return {data(), static_cast<std::size_t>(size())}; }
  Scalar* begin() requires std::same_as<Device, Cpu> { return data(); }
  Scalar* end() requires std::same_as<Device, Cpu> { return data() + size(); }
  const Scalar* begin() const requires std::same_as<Device, Cpu> { return data(); }
  const Scalar* end() const requires std::same_as<Device, Cpu> { return data() + size(); }

  // Views of a named tensor; of a temporary, tensors of their own, so that nothing dangles.
  template <detail::SliceArgument... A> decltype(auto) operator()(A... a) & { return view()(a...); }
  template <detail::SliceArgument... A> decltype(auto) operator()(A... a) const& { return view()(a...); }
  template <detail::SliceArgument... A> auto operator()(A... a) const&& { return owned(view()(a...)); }
  decltype(auto) operator[](long i) & { return view()[i]; }
  decltype(auto) operator[](long i) const& { return view()[i]; }
  auto operator[](long i) const&& { return owned(view()[i]); }
  auto transpose() & { return view().transpose(); }
  auto transpose() const& { return view().transpose(); }
  Tensor transpose() const&& { return owned(view().transpose()); }
  template <std::integral... I> auto permute(I... order) & { return view().permute(order...); }
  template <std::integral... I> auto permute(I... order) const& { return view().permute(order...); }
  template <std::integral... I> Tensor permute(I... order) const&& { return owned(view().permute(order...)); }
  auto reverse(int axis) & { return view().reverse(axis); }
  auto reverse(int axis) const& { return view().reverse(axis); }
  Tensor reverse(int axis) const&& { return owned(view().reverse(axis)); }
  auto diagonal() & { return view().diagonal(); }
  auto diagonal() const& { return view().diagonal(); }
  auto diagonal() const&& { return owned(view().diagonal()); }
  template <std::integral... E> auto reshape(E... e) & { return view().reshape(e...); }
  template <std::integral... E> auto reshape(E... e) const& { return view().reshape(e...); }
  /// Reshapes a temporary: the same memory under other extents, moved.
  template <std::integral... E> auto reshape(E... e) && { return std::move(*this).reshaped(view().reshape(e...).extents); }
  template <std::integral... E> auto reshape(E... e) const&& { return copy().reshape(e...); }
  template <int R> Tensor<Scalar, R, Device> reshape(const Dims<R>& to) && {
    return std::move(*this).reshaped(view().reshape(to).extents);
  }
  auto flatten() & { return view().flatten(); }
  auto flatten() const& { return view().flatten(); }
  auto flatten() const&& { return copy().flatten(); }
  auto flatten() && { return std::move(*this).reshaped(Dims<1>{{size()}}); }
  Scalar item() const requires std::same_as<Device, Cpu> { return view().item(); }
  /// The one value of a tensor of any device, copied to the host: waits for it.
  Scalar value() const { return view().value(); }
  /// A tensor of rank 0 is its value.
  operator Scalar() const requires(Rank == 0 && std::same_as<Device, Cpu>) { return item(); }

  template <int N> SKEIN_ALWAYS_INLINE detail::BoundView<Scalar, N> bind(const Dims<N>& d) const { return view().bind(d); }

 private:
  template <class, int, class> friend class Tensor;
  Tensor(Arena<Scalar, Device>&& memory, const Dims<Rank>& extents) : memory_(std::move(memory)), extents_(extents) {}
  /// Extents of rank 0 are those of one value, also where the tensor was moved from.
  void check_there() const {
    if constexpr (Rank == 0)
      if (!data()) throw ShapeError("this tensor was moved from, and has no value: assign one first");
  }
  template <int R> Tensor<Scalar, R, Device> reshaped(const Dims<R>& to) && {
    extents_ = {};  // as the move leaves them
    return {std::move(memory_), to};
  }

  template <class V> static auto owned(V&& v) {
    if constexpr (detail::IsView<std::remove_cvref_t<V>>::value)
      return Tensor<Scalar, std::remove_cvref_t<V>::rank, Device>(
          TensorView<const Scalar, std::remove_cvref_t<V>::rank, Device>(v));
    else return Scalar(v);
  }
  static std::size_t checked_count(const Dims<Rank>& extents) {
    unsigned long long n = 1;
    for (long e : extents)
      if (e < 0 || (e > 0 && n > (1ull << 60) / static_cast<unsigned long long>(e)))
        throw ShapeError("Tensor: " + detail::shape_text(extents) +
                         " is no shape: extents are not negative, and their product fits the memory");
      else n *= static_cast<unsigned long long>(e);
    return static_cast<std::size_t>(n);
  }
  template <class L> static Dims<Rank> list_shape(const L& values) {
    Dims<Rank> e;
    detail::list_extents<Rank, 0>(e, values);
    return e;
  }
  template <class L> void fill_list(const L& values) {
    if constexpr (std::same_as<Device, Cpu>) {
      Scalar* to = data();
      detail::list_values<Rank, 0>(extents_, to, values);
    } else {
      Tensor<Scalar, Rank, Cpu> host(extents_);
      host.fill_list(values);
      fill(host.data());
    }
  }
  void fill(const Scalar* host) {
    Copy<Device, Cpu>::run(data(), host, static_cast<std::size_t>(size()) * sizeof(Scalar), device(), Cpu{});
  }
  template <class E> SKEIN_NOINLINE Tensor& adopt(E&& e) { return *this = Tensor(std::forward<E>(e)); }
  template <class E> SKEIN_ALWAYS_INLINE Tensor& write(E&& e) {
    if constexpr (!Number<E>) {
      if (!data()) return adopt(std::forward<E>(e));
    } else if (Rank == 0 && !data()) *this = Tensor(extents_, device());  // it was moved from
    skein::assign(view(), std::forward<E>(e));
    return *this;
  }

  Arena<Scalar, Device> memory_;
  Dims<Rank> extents_{};
};

namespace detail {
/// A tensor that came as an rvalue: the tree keeps it; copies of the tree share it.
template <class S, int R, class D> struct Owned {
  using Scalar = S;
  using Device = D;
  using skein_expression = void;
  static constexpr int rank = R;
  static constexpr bool sound = true;
  std::shared_ptr<const Tensor<S, R, D>> tensor;
  const Dims<R>& shape() const { return tensor->shape(); }
  D device() const { return tensor->device(); }
  template <int N> BoundView<S, N> bind(const Dims<N>& d) const { return tensor->template bind<N>(d); }
};
template <class S, int R, class D> struct Leaf<Tensor<S, R, D>> {
  static TensorView<const S, R, D> make(const Tensor<S, R, D>& t) { return t.view(); }
  static Owned<S, R, D> make(Tensor<S, R, D>&& t) { return {std::make_shared<const Tensor<S, R, D>>(std::move(t))}; }
  static Owned<S, R, D> make(const Tensor<S, R, D>&& t) { return {std::make_shared<const Tensor<S, R, D>>(t.copy())}; }
};
}  // namespace detail

#define SKEIN_COMPOUND(op)                                   \
  template <class S, int R, class D, class E>                \
  requires(TensorExpression<E> || Number<E>) Tensor<S, R, D> \
  &operator op##=(Tensor<S, R, D>& to, E&& e) {              \
    assign(to.view(), to op std::forward<E>(e));             \
    return to;                                               \
  }
SKEIN_COMPOUND(+)
SKEIN_COMPOUND(-)
SKEIN_COMPOUND(*)
SKEIN_COMPOUND(/)
#undef SKEIN_COMPOUND

template <TensorExpression E> Tensor(E&&)
    -> Tensor<typename std::remove_cvref_t<E>::Scalar, std::remove_cvref_t<E>::rank, typename std::remove_cvref_t<E>::Device>;

/// The expression as a tensor of its own.
template <TensorExpression E> auto eval(E&& e) {
  using T = std::remove_cvref_t<E>;
  using Result = Tensor<typename T::Scalar, T::rank, typename T::Device>;
  if constexpr (!std::same_as<T, Result>) return Result(std::forward<E>(e));
  else if constexpr (std::is_lvalue_reference_v<E> || std::is_const_v<E>) return e.copy();
  else return Result(std::move(e));
}

/// The values on the host: an expression of the host as it is (of a temporary its values, so that nothing dangles), of another
/// device evaluated there and copied; waits for it.
template <TensorExpression E> decltype(auto) to_host(E&& e) {
  using T = std::remove_cvref_t<E>;
  constexpr bool here = std::same_as<typename T::Device, Cpu> || std::same_as<typename T::Device, detail::AnyDevice>;
  if constexpr (here && std::is_lvalue_reference_v<E>) return std::forward<E>(e);
  else if constexpr (here && std::is_constructible_v<T, E>) return T(std::forward<E>(e));
  else if constexpr (here) return e.copy();  // of a const tensor
  else if constexpr (requires { e.template to<Cpu>(); }) return e.template to<Cpu>();
  else return eval(e).template to<Cpu>();
}

}  // namespace skein::inline SKEIN_ABI
