// SPDX-License-Identifier: Apache-2.0
// Variable: a tensor that remembers how it was made: y = sum(exp(x) * w); y.backward(); x.gradient(). For experiments, losses
// made up on the way, and layers of one's own; layers and losses of a training know their derivatives at compile time instead.
#pragma once
#include "../ops/matmul.hpp"
#include "../tensor/create.hpp"
#include "dual.hpp"
#include "tape.hpp"

namespace skein::inline SKEIN_ABI::autodiff {

/// Copies share the value and the gradient, as handles. Not thread-safe. Every operation computes its value at once and keeps
/// what its derivative wants until the last Variable that depends on it is gone.
template <class Scalar_, int Rank, class Device_ = Cpu> class Variable {
 public:
  using Scalar = Scalar_;
  using Device = Device_;
  using Values = Tensor<Scalar, Rank, Device>;
  static constexpr int rank = Rank;

  /// A leaf, whose gradient is kept; constant(values) makes one that wants none.
  explicit Variable(Values values, bool wants_gradient = true) : node_(std::make_shared<Node>()) {
    node_->value = std::move(values);
    node_->wants_gradient = wants_gradient;
  }

  /// The values, in place; of a temporary they are a tensor of its own, so that nothing dangles: moved out where no other
  /// Variable and no result holds them, else copied.
  const Values& value() const& { return node_->value; }
  Values value() const&& { return taken(node_->value); }
  /// The value of a leaf, to be changed in place at once (a step of descent): what was computed from it before this call does not
  /// follow, and its backward() throws from now on. Throws ArgumentError for a result that wants a gradient.
  Values& leaf() & {
    if (!node_->leaf())
      throw ArgumentError("Variable::leaf: this is the result of an operation: only leaves can be changed; take detach()");
    node_->change();
    return node_->value;
  }
  const Dims<Rank>& shape() const& { return node_->value.shape(); }
  Dims<Rank> shape() const&& { return node_->value.shape(); }
  bool requires_gradient() const { return node_->wants_gradient; }
  /// Has backward() reached it?
  bool has_gradient() const { return node_->has_gradient; }
  /// A leaf's gradient: the sum over all calls of backward() since zero_gradient(). Throws ArgumentError where there is none.
  const Values& gradient() const& {
    if (!node_->has_gradient)
      throw ArgumentError(node_->wants_gradient
                              ? "Variable::gradient: no backward() has reached this variable yet (results do not keep theirs)"
                              : "Variable::gradient: this is a constant: it has no gradient");
    return node_->gradient;
  }
  Values gradient() const&& { return gradient(), taken(node_->gradient); }
  void zero_gradient() { node_->clear_gradient(); }
  /// The same values, without a history.
  Variable detach() const { return Variable(node_->value.copy(), false); }

  /// Gradients of this number with respect to all leaves that it was made of are added to theirs.
  void backward() const {
    static_assert(Rank == 0,
                  "backward() starts at a number: take sum() or mean() first, or give backward(seed) one value for each element");
    if constexpr (Rank == 0) backward(full(Dims<0>{}, Scalar(1), node_->value.device()));
  }
  /// Adds the gradients of sum(seed * *this), whatever the shape of this.
  void backward(const Values& seed) const {
    if (!node_->wants_gradient) throw ArgumentError("Variable::backward: nothing that this was made of wants a gradient");
    if (seed.shape() != shape())
      skein::detail::throw_shapes("backward", seed.shape(), shape(), "differ: the seed has the shape of the variable");
    if (node_->leaf()) return node_->add(seed);
    node_->clear_gradient();
    node_->add(seed);
    detail::run_backward(node_);
    node_->clear_gradient();
  }

  // For operations, also of your own: a result of these values, whose gradient hand_on(g) adds to the inputs by accumulate().
  template <class HandOn, class... Inputs> static Variable result(Values values, HandOn hand_on, const Inputs&... inputs) {
    Variable y(std::move(values), (inputs.requires_gradient() || ...));
    if (!y.node_->wants_gradient) return y;
    y.node_->hand_on = std::move(hand_on);
    (y.node_->inputs.push_back(inputs.node()), ...);
    return y;
  }
  /// Adds an expression of this shape to the gradient, where one is wanted.
  template <class E> void accumulate(E&& e) const { node_->add(std::forward<E>(e)); }
  /// Adds the gradient of what this was broadcast to.
  template <int N> void accumulate_sum(Tensor<Scalar, N, Device> g) const {
    if (node_->wants_gradient) node_->add(detail::sum_to<Rank>(std::move(g), shape()));
  }
  std::shared_ptr<detail::TapeNode> node() const { return node_; }

 private:
  using Node = detail::ValueNode<Scalar, Rank, Device>;
  Values taken(Values& of_node) const { return node_.use_count() == 1 ? std::move(of_node) : of_node.copy(); }

  std::shared_ptr<Node> node_;
};

template <class S, int R, class D> Variable(Tensor<S, R, D>) -> Variable<S, R, D>;
template <class S, int R, class D> Variable(Tensor<S, R, D>, bool) -> Variable<S, R, D>;

/// A Variable that wants no gradient.
template <class S, int R, class D> Variable<S, R, D> constant(Tensor<S, R, D> values) {
  return Variable<S, R, D>(std::move(values), false);
}

namespace detail {
template <class T> struct IsVariable : std::false_type {};
template <class S, int R, class D> struct IsVariable<Variable<S, R, D>> : std::true_type {};

/// f and its derivative, out of one function object that takes dual numbers.
template <class F> struct ValueOf {
  using vectorizes = void;
  F f;
  template <class V> constexpr V operator()(const V& x) const { return f(Dual<V>(x, V(0))).value; }
};
template <class F> struct DerivativeOf {
  using vectorizes = void;
  F f;
  template <class V> constexpr V operator()(const V& x) const { return f(Dual<V>(x, V(1))).derivative; }
};
}  // namespace detail

template <class T> concept AnyVariable = detail::IsVariable<std::remove_cvref_t<T>>::value;

/// y = f(x), value by value; the function object f takes dual numbers (write exp(x), where(c, a, b)), and is kept as it is.
template <class F, AnyVariable X> X apply(F f, const X& x) {
  return X::result(
      eval(map(detail::ValueOf<F>{f}, x.value())),
      [f, x](const typename X::Values& g) { x.accumulate(g * map(detail::DerivativeOf<F>{f}, x.value())); }, x);
}

#define SKEIN_UNARY(name, Function, ...)                                                \
  namespace detail {                                                                    \
  struct Function {                                                                     \
    template <class T> constexpr T operator()(const T& x) const { return __VA_ARGS__; } \
  };                                                                                    \
  }                                                                                     \
  template <AnyVariable X> X name(const X& x) { return apply(detail::Function{}, x); }
SKEIN_UNARY(exp, Exp, exp(x))
SKEIN_UNARY(log, Log, log(x))
SKEIN_UNARY(sqrt, Sqrt, sqrt(x))
SKEIN_UNARY(sin, Sin, sin(x))
SKEIN_UNARY(cos, Cos, cos(x))
SKEIN_UNARY(tanh, Tanh, tanh(x))
SKEIN_UNARY(erf, Erf, erf(x))
SKEIN_UNARY(abs, Abs, abs(x))
SKEIN_UNARY(square, Square, x* x)
SKEIN_UNARY(sigmoid, Sigmoid, sigmoid(x))
SKEIN_UNARY(relu, Relu, where(x <= T(0), T(0), x))  // at 0 its derivative is 0, as that of the layer
#undef SKEIN_UNARY

template <AnyVariable X> X operator-(const X& x) {
  return X::result(
      eval(-x.value()), [x](const typename X::Values& g) { x.accumulate(-g); }, x);
}

namespace detail {
template <class A, class B> using Broadcast =
    Variable<typename A::Scalar, (A::rank > B::rank ? A::rank : B::rank), typename A::Device>;
}  // namespace detail

// Two variables, broadcast against each other; or a variable and a number.
#define SKEIN_BINARY(op, of_a, of_b)                                                                                   \
  template <class S, int A, int B, class D> auto operator op(const Variable<S, A, D>& a, const Variable<S, B, D>& b) { \
    using Y = detail::Broadcast<Variable<S, A, D>, Variable<S, B, D>>;                                                 \
    return Y::result(                                                                                                  \
        eval(a.value() op b.value()),                                                                                  \
        [a, b](const typename Y::Values& g) {                                                                          \
          if (a.requires_gradient()) a.accumulate_sum(typename Y::Values(of_a));                                       \
          if (b.requires_gradient()) b.accumulate_sum(typename Y::Values(of_b));                                       \
        },                                                                                                             \
        a, b);                                                                                                         \
  }
SKEIN_BINARY(+, g + 0, g + 0)
SKEIN_BINARY(-, g + 0, -g)
SKEIN_BINARY(*, g* b.value(), g* a.value())
SKEIN_BINARY(/, g / b.value(), -g*(a.value() / b.value()) / b.value())  // a square would overflow
#undef SKEIN_BINARY

#define SKEIN_WITH_NUMBER(op, of_left, of_right)                      \
  template <AnyVariable X, Number N> X operator op(const X& x, N n) { \
    const auto c = static_cast<typename X::Scalar>(n);                \
    return X::result(                                                 \
        eval(x.value() op c),                                         \
        [x, c](const typename X::Values& g) {                         \
          (void)c;                                                    \
          x.accumulate(of_left);                                      \
        },                                                            \
        x);                                                           \
  }                                                                   \
  template <AnyVariable X, Number N> X operator op(N n, const X& x) { \
    const auto c = static_cast<typename X::Scalar>(n);                \
    return X::result(                                                 \
        eval(c op x.value()),                                         \
        [x, c](const typename X::Values& g) {                         \
          (void)c;                                                    \
          x.accumulate(of_right);                                     \
        },                                                            \
        x);                                                           \
  }
SKEIN_WITH_NUMBER(+, g, g)
SKEIN_WITH_NUMBER(-, g, -g)
SKEIN_WITH_NUMBER(*, g* c, g* c)
SKEIN_WITH_NUMBER(/, g / c, -g*(c / x.value()) / x.value())
#undef SKEIN_WITH_NUMBER

/// x^p with a constant p.
template <AnyVariable X, Number N> X pow(const X& x, N p) {
  const auto c = static_cast<typename X::Scalar>(p);
  const auto less = c == 0 ? c : c - 1;  // of 1 = x^0 the gradient is 0, also at 0
  return X::result(
      eval(skein::pow(x.value(), c)),
      [x, c, less](const typename X::Values& g) { x.accumulate(g * c * skein::pow(x.value(), less)); }, x);
}

namespace detail {
/// The gradient of a sum: each value gets that of the sum it went into.
template <AnyVariable X, class Gradient> void accumulate_spread(const X& x, const Gradient& g) {
  typename X::Values spread(x.shape(), x.value().device());
  assign(spread.view(), g);
  x.accumulate(spread);
}
}  // namespace detail

/// The sum of all values: a number.
template <class S, int R, class D> Variable<S, 0, D> sum(const Variable<S, R, D>& x) {
  using Y = Variable<S, 0, D>;
  return Y::result(
      full(Dims<0>{}, static_cast<S>(skein::sum(x.value())), x.value().device()),
      [x](const typename Y::Values& g) { detail::accumulate_spread(x, g); }, x);
}
/// The mean of all values: a number.
template <class S, int R, class D> Variable<S, 0, D> mean(const Variable<S, R, D>& x) {
  return sum(x) / static_cast<S>(std::max<long>(1, x.shape().count()));
}
/// Sums along one axis, which stays with extent 1, so that the result broadcasts against x.
template <class S, int R, class D> Variable<S, R, D> sum(const Variable<S, R, D>& x, int axis) {
  using Y = Variable<S, R, D>;
  return Y::result(
      Tensor<S, R, D>(skein::sum(x.value(), axis, keep)), [x](const typename Y::Values& g) { detail::accumulate_spread(x, g); },
      x);
}

/// The product of two matrices.
template <class S, class D> Variable<S, 2, D> mm(const Variable<S, 2, D>& a, const Variable<S, 2, D>& b) {
  using Y = Variable<S, 2, D>;
  return Y::result(
      skein::mm(a.value(), b.value()),
      [a, b](const typename Y::Values& g) {
        if (a.requires_gradient()) a.accumulate(skein::mm(g, b.value().transpose()));
        if (b.requires_gradient()) b.accumulate(skein::mm(a.value().transpose(), g));
      },
      a, b);
}
/// A matrix times a vector.
template <class S, class D> Variable<S, 1, D> mv(const Variable<S, 2, D>& a, const Variable<S, 1, D>& x) {
  using Y = Variable<S, 1, D>;
  return Y::result(
      Tensor<S, 1, D>(skein::mv(a.value(), x.value())),
      [a, x](const typename Y::Values& g) {
        if (a.requires_gradient()) a.accumulate(g.view().reshape(g.size(), 1L) * x.value());
        if (x.requires_gradient()) x.accumulate(skein::sum(a.value() * g.view().reshape(g.size(), 1L), 0));
      },
      a, x);
}
/// The inner product of two vectors.
template <class S, class D> Variable<S, 0, D> dot(const Variable<S, 1, D>& a, const Variable<S, 1, D>& b) {
  if (a.shape() != b.shape())
    skein::detail::throw_shapes("dot", a.shape(), b.shape(), "differ: both vectors must have one length");
  return sum(a * b);
}

/// The transposed matrix: extents (n, m) of one that is (m, n); its gradient is transposed back.
template <class S, class D> Variable<S, 2, D> transpose(const Variable<S, 2, D>& x) {
  using Y = Variable<S, 2, D>;
  return Y::result(
      Tensor<S, 2, D>(x.value().transpose()), [x](const typename Y::Values& g) { x.accumulate(g.transpose()); }, x);
}
/// The same values under other extents.
template <class S, int R, class D, std::integral... E> auto reshape(const Variable<S, R, D>& x, E... extents) {
  using Y = Variable<S, static_cast<int>(sizeof...(E)), D>;
  return Y::result(
      Tensor<S, static_cast<int>(sizeof...(E)), D>(x.value().view().reshape(static_cast<long>(extents)...)),
      [x](const typename Y::Values& g) { x.accumulate(g.view().reshape(x.shape())); }, x);
}

/// log softmax over each row; no value overflows.
template <class S, class D> Variable<S, 2, D> log_softmax(const Variable<S, 2, D>& x) {
  const Variable<S, 2, D> shifted = x - constant(Tensor<S, 2, D>(skein::max(x.value(), 1, keep)));
  return shifted - log(sum(exp(shifted), 1));
}

}  // namespace skein::inline SKEIN_ABI::autodiff
