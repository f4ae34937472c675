// SPDX-License-Identifier: Apache-2.0
// WeightedLosses: several losses of one output, added up with factors:
//
//     const auto loss = nn::weighted_losses<Model>(nn::on(nn::CrossEntropy{}), nn::on(nn::OwnLoss{Focal{}}, 0.1));
//     sk::Trainer trainer{model, loss, optim::Adam{}};
//
// All of them compare with the same targets. Losses of several outputs are a GraphLoss. Not included by skein/skein.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../../core/text.hpp"
#include "graph_loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A loss of the model's output, and its factor in the sum.
template <class L> struct WeightedLoss {
  using loss_type = L;
  L loss;
  double factor = 1;
};
/// A loss for weighted_losses.
template <class L> WeightedLoss<L> on(L loss, double factor = 1) { return {std::move(loss), factor}; }

namespace detail {
/// to[i] += from[i].
template <class Scalar> struct AddGradient {
  Scalar* to;
  const Scalar* from;
  constexpr void operator()(long i) const { to[i] += from[i]; }
};
/// Adds the sums of one loss, on a device, and leaves zeros for the next. Divisor and right answers are those of the first. With
/// the factor 0 the loss does not count, not even one that is no finite number.
struct AddWeightedSums {
  double *sums, *part;
  double factor;
  bool first;
  constexpr void operator()(long) const {
    if (factor != 0) sums[0] += factor * part[0];
    if (first) sums[1] += part[1], sums[2] += part[2];
    part[0] = part[1] = part[2] = 0;
  }
};
template <TargetKind First, class... L> inline constexpr bool same_targets = ((L::target == First && !HasTargetLength<L>)&&...);
/// What outputs all of them take: that of those which say it, which say the same.
template <std::size_t N> constexpr OutputKind common_kind(const std::array<OutputKind, N>& kinds) {
  for (const OutputKind k : kinds)
    if (k != OutputKind::any) return k;
  return OutputKind::any;
}
template <std::size_t N> constexpr bool one_kind(const std::array<OutputKind, N>& kinds) {
  for (const OutputKind k : kinds)
    if (k != OutputKind::any && k != common_kind(kinds)) return false;
  return true;
}
template <class First, class... L> consteval bool assert_weighted_losses() {
  constexpr std::array<OutputKind, sizeof...(L) + 1> kinds{kind_taken_by<First>(), kind_taken_by<L>()...};
  static_assert(same_targets<First::target, First, L...>,
                "weighted_losses: all losses compare with the same targets, and here one takes class labels and another values: "
                "losses of several outputs are a graph_loss");
  static_assert(one_kind(kinds),
                "weighted_losses: one loss takes logits and another log-probabilities, and there is one output for both");
  return true;
}
}  // namespace detail

/// The sum of factor times loss over losses of one output, each a mean with its own divisor, as in PyTorch. All must have the
/// same divisor: with weights of classes or an ignored label, give both to each loss. Accuracy is that of the first. With the
/// factor 0 a loss does not count. Throws ArgumentError where divisors differ (on a device of its own: where weights of classes
/// or ignored labels do), for a factor that is no finite number, and as the losses do.
template <class Model, class... L> class WeightedLosses {
  static_assert(detail::assert_weighted_losses<L...>());
  using First = TypeAt<List<L...>, 0>;

 public:
  static constexpr TargetKind target = First::target;
  static constexpr OutputKind takes = detail::common_kind(std::array{kind_taken_by<L>()...});
  /// Scalars a sample: the gradient of one loss.
  static constexpr long workspace = whole_line(row_pitch(Model::output_extents.count()));

  explicit WeightedLosses(WeightedLoss<L>... losses) : losses_(std::move(losses)...) {
    each([&](std::size_t i, const auto& on) {
      if (!std::isfinite(on.factor)) throw ArgumentError(text("weighted_losses: the factor of loss {} is {}", i + 1, on.factor));
      starts_[i] = table_.size();
      if constexpr (HasLossTable<std::remove_cvref_t<decltype(on.loss)>>) {
        const std::span<const float> t = on.loss.table();
        table_.insert(table_.end(), t.begin(), t.end());
      }
      if constexpr (!on_host<typename Model::device>) check_alike(i, on.loss);
    });
  }

  /// The losses' weights of classes, one after the other.
  std::span<const float> table() const { return table_; }
  std::optional<std::int32_t> ignored_label() const {
    std::optional<std::int32_t> label;
    each([&](std::size_t, const auto& on) {
      if (!label) label = nn::ignored_label(on.loss);
    });
    return label;
  }
  template <class Scalar>
  static void check_targets(const Scalar* targets, long pitch, long width, long count, const SampleNames& names) {
    (nn::check_targets<L>(targets, pitch, width, count, names), ...);
  }
  void describe(NamedValues& to) const {
    each([&](std::size_t i, const auto& on) { describe_part("weighted_losses", i, on, to); });
    to.of("the loss");
  }

  /// The divisor of all.
  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const {
    double first = 0;
    each([&](std::size_t i, const auto& on) {
      const double own = on.loss.weight(call);
      if (i == 0) first = own;
      check_divisor(i, own, first);
    });
    return first;
  }
  /// With memory of this call.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    return detail::call_with_memory(*this, call, call.gradient ? call.output_pitch * call.count : 0);
  }
  template <class Scalar, class Device> LossSums operator()(const GraphLossCall<Scalar, Device>& call) const {
    LossSums all;
    each([&](std::size_t i, const auto& on) {
      const LossSums own = part(i, on, call);
      if (i == 0) all = {0, own.weight, own.correct};
      if constexpr (on_host<Device>) check_divisor(i, own.weight, all.weight);
      if (on.factor != 0) all.loss += on.factor * own.loss;
    });
    return all;
  }

 private:
  template <class F> void each(F&& f) const {
    std::size_t i = 0;
    std::apply([&](const auto&... on) { (f(i++, on), ...); }, losses_);
  }
  /// Where the host does not see the divisors: losses have one that say the same of how much a label counts.
  template <class Loss> void check_alike(std::size_t i, const Loss& loss) const {
    if constexpr (HasLossTable<Loss> && HasLossTable<First>) {
      const First& first = std::get<0>(losses_).loss;
      if (!std::ranges::equal(loss.table(), first.table()) || nn::ignored_label(loss) != nn::ignored_label(first))
        throw ArgumentError(text(
            "weighted_losses: loss {} and the first have other weights of classes or another ignored label: {}", i + 1, mend));
    }
  }
  static constexpr const char* mend = "give both the same class_weights and the same ignore_label";
  static void check_divisor(std::size_t i, double own, double first) {
    if (std::abs(own - first) > 1e-9 * std::abs(first))
      throw ArgumentError(text("weighted_losses: loss {} is divided by {} and the first by {}: {}", i + 1, own, first, mend));
  }
  /// One loss, and its gradient: the first writes it, the others add theirs. Returns its sums; nothing on a device.
  template <class On, class Scalar, class Device>
  LossSums part(std::size_t i, const On& on, const GraphLossCall<Scalar, Device>& call) const {
    LossCall<Scalar, Device> own = call;
    own.scale = static_cast<Scalar>(static_cast<double>(call.scale) * on.factor);
    if (i > 0 && call.gradient) own.gradient = call.workspace;
    if (on.factor == 0) own.gradient = nullptr;  // 0 times what is not finite would be no number
    own.table = call.table ? call.table + starts_[i] : nullptr;
    own.sums = call.part;
    const LossSums sums = on.loss(own);
    if (const long n = call.count > 0 ? (call.count - 1) * call.output_pitch + call.width : 0; call.gradient) {
      if (i > 0 && own.gradient) ops::for_each<Device>(n, detail::AddGradient<Scalar>{call.gradient, call.workspace});
      else if (i == 0 && !own.gradient) ops::fill<Device>(call.gradient, Scalar(0), call.count * call.output_pitch);
    }
    if constexpr (!on_host<Device>) ops::for_each<Device>(1, detail::AddWeightedSums{call.sums, call.part, on.factor, i == 0});
    return sums;
  }

  std::tuple<WeightedLoss<L>...> losses_;
  std::array<std::size_t, sizeof...(L)> starts_{};
  std::vector<float> table_;
};

/// The weighted sum of losses of a model's output.
template <class Model, class... L> WeightedLosses<Model, L...> weighted_losses(WeightedLoss<L>... losses) {
  return WeightedLosses<Model, L...>(std::move(losses)...);
}

}  // namespace skein::inline SKEIN_ABI::nn
