// SPDX-License-Identifier: Apache-2.0
// A loss's gradient out of its forward formula. The formula is a function object, written once for every device, over one element
// or over one row with a label; the library evaluates it on dual numbers. A row's formula sees the outputs only through
// reductions, so that its gradient costs a few passes over the row and not one a column: with z_k = sum_c h_k(x_c, z_1 ..
// z_{k-1}), the derivative of the loss by x_c is sum_k (d loss / d z_k) h_k'(x_c); each factor is one evaluation with one
// reduction's derivative set to 1, and a last evaluation adds the products up.
#pragma once
#include <concepts>
#include <limits>
#include <type_traits>

#include "../../autodiff/dual.hpp"
#include "../../ops/label_loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// What is known of a row's reductions, in the order in which the formula asks for them.
template <class Scalar> struct FormulaState {
  static constexpr int capacity = 8;
  enum class Evaluation { values, factor, gradient } evaluation = Evaluation::values;
  int next = 0, seed = -1;  // the reduction to come; the one whose derivative is 1
  Scalar value[capacity] = {}, factor[capacity] = {};
  Scalar greatest[capacity] = {}, log_total[capacity] = {};  // of log_sum_exp and log_probability
  long at[capacity] = {};                                    // of greatest
  bool within_sum = false;                                   // a term is being evaluated

  constexpr void begin(Evaluation what, int seed_or_none = -1) { evaluation = what, seed = seed_or_none, next = 0; }
};
}  // namespace detail

/// A row of outputs and its label, as a formula sees it. What it returns are dual numbers (T): calculate with them as with plain
/// ones. At most 8 of its reductions may be used in one formula; with more the loss is not a number. On a GPU the lanes of a warp
/// share the row: all of them evaluate the formula, each looks at its columns. Which reductions are used, and in which order,
/// must not depend on the outputs' derivatives; a term of sum() asks the row for none.
template <class Scalar_, class Lanes> class FormulaRow {
  using State = detail::FormulaState<Scalar_>;
  using Evaluation = typename State::Evaluation;

 public:
  using Scalar = Scalar_;
  using T = Dual<Scalar>;

  constexpr FormulaRow(const ops::LossRow<Scalar, Lanes>& row, State& state) : row_(row), state_(state) {}

  constexpr long width() const { return row_.width; }  ///< outputs a row
  constexpr long label() const { return row_.label; }  ///< the sample's class, from 0 to width() - 1

  /// The output of one column, which every lane names alike. Not a number where there is no such column.
  constexpr T at(long column) const {
    const bool there = column >= 0 && column < row_.width;
    return reduce([&](int) { return there ? row_.x[column] : std::numeric_limits<Scalar>::quiet_NaN(); },
                  [](int) { return Scalar(0); }, [&](int, long c) { return c == column ? Scalar(1) : Scalar(0); });
  }
  /// The output of the sample's class.
  constexpr T at_label() const { return at(row_.label); }
  /// The greatest output; its derivative belongs to the first of equals.
  constexpr T greatest() const {
    return reduce(
        [&](int k) {
          const auto best = ops::detail::best_of_row(row_.x, row_.width, row_.lanes);
          state_.at[k] = best.at;
          return best.value;
        },
        [](int) { return Scalar(0); }, [&](int k, long c) { return c == state_.at[k] ? Scalar(1) : Scalar(0); });
  }
  /// log sum_c exp(x_c), safe for any outputs.
  constexpr T log_sum_exp() const {
    return reduce([&](int k) { return softmax_of(k), state_.greatest[k] + state_.log_total[k]; }, [](int) { return Scalar(0); },
                  [&](int k, long c) { return probability(k, c); });
  }
  /// log softmax(x)[label]: the logarithm of the probability that logits give to the sample's class. Safe for any outputs.
  constexpr T log_probability() const {
    return reduce([&](int k) { return softmax_of(k), row_.x[row_.label] - state_.greatest[k] - state_.log_total[k]; },
                  [](int) { return Scalar(0); },
                  [&](int k, long c) { return (c == row_.label ? Scalar(1) : Scalar(0)) - probability(k, c); });
  }
  /// sum_c term(x_c) or sum_c term(x_c, c). The term may use what the row returned before.
  template <class Term> constexpr T sum(const Term& term) const {
    return reduce([&](int) { return total(term).value; }, [&](int) { return total(term).derivative; },
                  [&](int, long c) { return evaluate(term, c, Scalar(1)).derivative; });
  }

 private:
  /// value: over all columns. derivative: what the reductions before carry into this one. local: the derivative by the value of a
  /// column.
  template <class Value, class Derivative, class Local>
  constexpr T reduce(const Value& value, const Derivative& derivative, const Local& local) const {
    if (state_.within_sum) state_.next = State::capacity;
    const int k = state_.next++;
    if (k >= State::capacity) return T(std::numeric_limits<Scalar>::quiet_NaN(), Scalar(0));
    if (state_.evaluation == Evaluation::values) {
      state_.value[k] = value(k);
    } else if (state_.evaluation == Evaluation::factor) {
      if (k <= state_.seed) return T(state_.value[k], k == state_.seed ? Scalar(1) : Scalar(0));
      return T(state_.value[k], derivative(k));
    } else {
      for (long c = row_.begin(); c < row_.width; c += row_.step()) {
        const Scalar before = k == 0 ? Scalar(0) : row_.gradient[c];
        row_.gradient[c] = before + state_.factor[k] * local(k, c) * row_.factor;
      }
    }
    return T(state_.value[k], Scalar(0));
  }
  template <class Term> constexpr T evaluate(const Term& term, long c, Scalar derivative) const {
    state_.within_sum = true;
    T result;
    if constexpr (std::is_invocable_v<const Term&, T, long>) result = term(T(row_.x[c], derivative), c);
    else result = term(T(row_.x[c], derivative));
    state_.within_sum = false;
    return result;
  }
  template <class Term> constexpr T total(const Term& term) const {
    T lane(Scalar(0), Scalar(0));
    for (long c = row_.begin(); c < row_.width; c += row_.step()) lane += evaluate(term, c, Scalar(0));
    return {row_.sum(lane.value), row_.sum(lane.derivative)};
  }
  constexpr void softmax_of(int k) const {
    using std::exp, std::log;
    Scalar greatest = -std::numeric_limits<Scalar>::infinity(), total = 0;
    for (long c = row_.begin(); c < row_.width; c += row_.step()) greatest = row_.x[c] > greatest ? row_.x[c] : greatest;
    greatest = row_.greatest(greatest);
    for (long c = row_.begin(); c < row_.width; c += row_.step()) total += exp(row_.x[c] - greatest);
    state_.greatest[k] = greatest;
    state_.log_total[k] = log(row_.sum(total));
  }
  constexpr Scalar probability(int k, long c) const {
    using std::exp;
    return exp(row_.x[c] - state_.greatest[k] - state_.log_total[k]);
  }

  const ops::LossRow<Scalar, Lanes>& row_;
  State& state_;
};

/// A formula of one element: f(output, target), both of one type, returns its loss.
template <class F> concept ElementFormula = requires(const F& f, Dual<float> x) {
  { f(x, x) } -> std::convertible_to<Dual<float>>;
};
/// A formula of one row: f(row) with a FormulaRow.
template <class F> concept RowFormula = requires(const F& f, const FormulaRow<float, ops::SingleLane>& row) {
  { f(row) } -> std::convertible_to<Dual<float>>;
};

namespace detail {
template <class F> inline constexpr bool is_a_formula = false;

/// An element's loss and derivative, for ops::vector_loss.
template <class Formula> struct FormulaElement {
  Formula f;
  template <class Scalar> constexpr Scalar operator()(Scalar x, Scalar t, long, Scalar& derivative) const {
    const Dual<Scalar> y = f(Dual<Scalar>(x, Scalar(1)), Dual<Scalar>(t, Scalar(0)));
    derivative = y.derivative;
    return y.value;
  }
};
/// A row's loss and gradient, for ops::label_loss.
template <class Formula> struct FormulaOfRow {
  Formula f;
  template <class Scalar, class Lanes> constexpr Scalar operator()(const ops::LossRow<Scalar, Lanes>& row) const {
    using State = FormulaState<Scalar>;
    State state;
    const FormulaRow<Scalar, Lanes> seen(row, state);
    const Scalar loss = value_of<Scalar>(f(seen));
    const int used = state.next;
    if (used > State::capacity) return std::numeric_limits<Scalar>::quiet_NaN();
    if (!row.gradient) return loss;
    for (int k = 0; k < used; ++k) {
      state.begin(State::Evaluation::factor, k);
      state.factor[k] = Dual<Scalar>(f(seen)).derivative;
    }
    if (used == 0)
      for (long c = row.begin(); c < row.width; c += row.step()) row.derivative(c, Scalar(0));
    state.begin(State::Evaluation::gradient);
    (void)f(seen);
    return loss;
  }

 private:
  template <class Scalar> static constexpr Scalar value_of(const Dual<Scalar>& y) { return y.value; }
};
/// Whether a formula stays within the reductions that it may use, seen on a row of one output.
template <class Formula> constexpr bool fits_row(const Formula& f) {
  const float x = 0;
  FormulaState<float> state;
  const ops::LossRow<float, ops::SingleLane> row{&x, 1, 0, nullptr, 1, {}};
  (void)f(FormulaRow<float, ops::SingleLane>(row, state));
  return state.next <= FormulaState<float>::capacity;
}
}  // namespace detail

/// Refuses, with one sentence, a type that is no formula of a loss.
template <class F> consteval void assert_formula() {
  if constexpr (!std::is_trivially_copyable_v<F>)
    static_assert(detail::is_a_formula<F>, "a loss's formula travels into kernels: let it hold numbers, not vectors or strings");
  else if constexpr (!ElementFormula<F> && !RowFormula<F>)
    static_assert(
        detail::is_a_formula<F>,
        "a loss's formula is called with an element, template <class T> constexpr T operator()(T output, T target) const, or "
        "with a row, constexpr auto operator()(const auto& row) const; it writes exp(x) for std::exp(x), where(x < 0, a, b) "
        "for ?:");
}

}  // namespace skein::inline SKEIN_ABI::nn
