// SPDX-License-Identifier: Apache-2.0
// OwnLoss: a loss of the user's out of its forward formula alone. The derivative is formed at compile time, by dual numbers;
// labels, weights of classes, the divisor and the device are the library's.
//
//     struct Focal {                                              // Lin et al., "Focal loss for dense object detection", 2017
//       float gamma = 2;
//       constexpr auto operator()(const auto& row) const {
//         const auto log_p = row.log_probability();
//         return -pow(-expm1(log_p), gamma) * log_p;
//       }
//     };
//     Trainer trainer{model, nn::OwnLoss{Focal{.gamma = 2}}, optim::Adam{}};
#pragma once
#include <concepts>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "formula.hpp"
#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Becomes a member of that type and of no other.
template <class Number> struct Exactly { template <std::same_as<Number> T> operator T() const; };
/// The members of F are numbers of this type and nothing else: its bytes are its values, without gaps and addresses.
template <class F, class Number, std::size_t... I> constexpr bool made_of(std::index_sequence<I...>) {
  return std::is_aggregate_v<F> && sizeof(F) == sizeof(Number) * sizeof...(I) && requires { F{(void(I), Exactly<Number>{})...}; };
}
template <class F, class Number> inline constexpr bool is_made_of =
    made_of<F, Number>(std::make_index_sequence<(sizeof(F) / sizeof(Number) < 16 ? sizeof(F) / sizeof(Number) : 0)>{});
}  // namespace detail

/// What an OwnLoss of rows does with labels.
struct OwnLossOptions {
  std::vector<float> class_weights = {};          ///< empty: 1 for every class
  std::optional<std::int32_t> ignore_label = {};  ///< samples with this label count nothing
};

/// The mean of a formula. f(output, target) is an element's loss, averaged over samples and values (TargetKind::vector); f(row)
/// is a row's loss for its label, weighted by the label's class and divided by the sum of those weights, not by the number of
/// samples (TargetKind::label; see CrossEntropy).
/// Written as a type of namespace scope it runs on a GPU too; a lambda is for the Cpu.
template <class Formula> class OwnLoss {
  static_assert((assert_formula<Formula>(), true));

 public:
  static constexpr TargetKind target = RowFormula<Formula> ? TargetKind::label : TargetKind::vector;
  Formula formula;
  OwnLossOptions options;

  /// Throws ArgumentError for a formula that asks its row for too much.
  explicit OwnLoss(Formula f) : formula(f) { check(formula); }
  OwnLoss(Formula f, OwnLossOptions o) : formula(f), options(std::move(o)) {
    check(formula);
    static_assert(target == TargetKind::label,
                  "OwnLoss: weights of classes and ignored labels belong to a formula of a row; one of an "
                  "element has targets, and weighs them itself");
  }

  std::span<const float> table() const { return {options.class_weights.data(), options.class_weights.size()}; }
  std::optional<std::int32_t> ignored_label() const { return options.ignore_label; }
  /// The formula's name, which a lambda has not, and its numbers: what its own void describe(NamedValues&) const says, or else
  /// all members, where those are of one type: float, double or int.
  void describe(NamedValues& to) const {
    to.of("OwnLoss").add("the formula", detail::bare_name<Formula>());
    if constexpr (SaysItsValues<Formula>) formula.describe(to);
    else if constexpr (detail::is_made_of<Formula, float> || detail::is_made_of<Formula, double> ||
                       detail::is_made_of<Formula, int>)
      to.add_hash("the content of the formula", &formula, sizeof formula);
    to.of("OwnLoss");
  }

  /// The divisor: of labels, which are on the host then, or the number of elements.
  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const {
    if constexpr (target == TargetKind::vector) return element_weight(call);
    else return label_weight("OwnLoss", call, table(), options.ignore_label);
  }
  /// Throws ArgumentError for a label that is no class, and for a number of weights that is not that of the classes.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    if constexpr (RowFormula<Formula>) {
      check_class_weights("OwnLoss", table(), call.width);
      return label_loss(call, detail::FormulaOfRow<Formula>{formula},
                        {.class_weights = table_of(call, table()), .ignore = options.ignore_label});
    } else if constexpr (ElementFormula<Formula>) {
      return vector_loss(call, detail::FormulaElement<Formula>{formula});
    } else {
      return {};  // refused already: no second error
    }
  }

 private:
  static void check(const Formula& f) {
    if constexpr (RowFormula<Formula>)
      if (!detail::fits_row(f))
        throw ArgumentError(
            "OwnLoss: the formula asks its row for more than 8 reductions, or for one within a term of sum(): keep what "
            "the row returns in a variable, and use it there");
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
