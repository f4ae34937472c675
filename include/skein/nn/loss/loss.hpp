// SPDX-License-Identifier: Apache-2.0
// What a loss is: a small value (an aggregate of options, no template) that turns the network's outputs and the targets of
// some samples into sums and, where wanted, the gradient of the outputs. It never divides by the number of samples: the
// library does that, since only it knows how many samples the other workers and ranks have seen.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "../../core/error.hpp"
#include "../../core/named_values.hpp"
#include "../../core/shape.hpp"
#include "../../core/target_kind.hpp"
#include "../../core/text.hpp"
#include "../../device/batch_view.hpp"
#include "../../device/copy.hpp"
#include "../../ops/label_loss.hpp"
#include "../../ops/vector_loss.hpp"
#include "../layer_name.hpp"
#include "../output_kind.hpp"
#include "check_labels.hpp"

namespace skein::inline SKEIN_ABI::nn {

using skein::TargetKind;

/// Labels of a sample of a network with these outputs: one, or of (T, C) one a position, whose C values are compared with it.
constexpr long labels_each(const Extents& output) { return output.count() / output.last(); }

/// The memory of one call: one worker's slice of the batch. Rows are `output_pitch` (`target_pitch`) scalars apart. With
/// TargetKind::label a row is what belongs to one label: `count` rows are of `count / labels_each` samples.
template <class Scalar_, class Device_> struct LossCall {
  using Scalar = Scalar_;
  using Device = Device_;
  const Scalar* outputs = nullptr;  ///< (count, width)
  long output_pitch = 0;
  long width = 0;                        ///< classes, or values a sample
  const std::int32_t* labels = nullptr;  ///< (count), with TargetKind::label
  const Scalar* targets = nullptr;       ///< (count, width), with TargetKind::vector
  long target_pitch = 0;
  long count = 0;                ///< rows: samples, or with labels positions of samples
  Scalar scale = 1;              ///< factor of the gradient: 1 / the weight of the whole batch
  Scalar* gradient = nullptr;    ///< (count, width), pitch and gaps as the outputs; null: not wanted
  long first = 0;                ///< number of the first sample, for messages
  long labels_each = 1;          ///< labels, and so rows, of a sample, for messages
  const float* table = nullptr;  ///< the device's copy of the loss's table(); null: the loss reads its own
  double* sums = nullptr;        ///< not null: loss, weight and correct answers are added there, and the call returns nothing
  const ops::StepValues* values = nullptr;  ///< not null: the gradient is also multiplied by its loss_scale
};

/// What a call returns. The mean loss is the sum of `loss` over the sum of `weight`, over all workers and ranks.
struct LossSums {
  double loss = 0;     ///< sum of the weighted losses of the samples
  double weight = 0;   ///< what they contribute to the divisor
  double correct = 0;  ///< rows whose greatest output is the label (TargetKind::label)

  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    weight += o.weight;
    correct += o.correct;
    return *this;
  }
  double mean() const { return weight > 0 ? loss / weight : 0; }
};

/// The rows that a loss gets of a sample's outputs.
template <class Loss> constexpr long rows_of_sample(const Extents& output) {
  return Loss::target == TargetKind::label ? labels_each(output) : 1;
}
/// What so many samples add to the divisor of a loss without weights; none count as one.
template <class Loss> constexpr double expected_weight(const Extents& output, long samples) {
  const long each = Loss::target == TargetKind::label ? labels_each(output) : output.count();
  return static_cast<double>(samples > 0 ? samples : 1) * static_cast<double>(each);
}

/// L says what it compares with: class numbers (TargetKind::label), or a row of values a sample (TargetKind::vector).
template <class L> concept HasTarget = requires {
  { L::target } -> std::convertible_to<TargetKind>;
  requires std::bool_constant<(L::target != TargetKind::none)>::value;
};
/// L computes the sums of a LossCall and writes its gradient.
template <class L> concept HasLossCall = requires(const L& loss, const LossCall<float, Cpu>& call) {
  { loss(call) } -> std::same_as<LossSums>;
};
/// The divisor's contribution without a pass over the outputs, so that the gradient can be scaled as it is written.
template <class L> concept HasLossWeight = requires(const L& loss, const LossCall<float, Cpu>& call) {
  { loss.weight(call) } -> std::convertible_to<double>;
};

/// A loss of labels that leaves samples out says which: std::optional<std::int32_t> ignored_label() const, so that whoever looks
/// at labels before a step lets that one pass.
template <class L> concept SaysIgnoredLabel = requires(const L& loss) {
  { loss.ignored_label() } -> std::same_as<std::optional<std::int32_t>>;
};
/// It has a member for it, which nobody would look at.
template <class L> concept HasIgnoreLabel = requires(const L& loss) { loss.ignore_label; };
/// The label that a loss leaves out; none where it does not say.
template <class L> std::optional<std::int32_t> ignored_label([[maybe_unused]] const L& loss) {
  if constexpr (SaysIgnoredLabel<L>) return loss.ignored_label();
  else return {};
}

/// A loss: says what targets it takes, and turns a LossCall into LossSums.
template <class L> concept Loss = std::copyable<L> && HasTarget<L> && HasLossCall<L> && HasLossWeight<L>;

namespace detail {
template <class L> inline constexpr bool is_a_loss = false;
}

/// Refuses, with one sentence, a type that is no loss. (The sentences are here and not in a type: clang would add an error.)
template <class L> consteval void assert_loss() {
  if constexpr (!std::copyable<L>) static_assert(detail::is_a_loss<L>, "a loss is a value: it must be copyable");
  else if constexpr (!HasTarget<L>)
    static_assert(
        detail::is_a_loss<L>,
        "a loss says what it compares with: static constexpr nn::TargetKind target. A formula alone, of a row of outputs "
        "or of (output, target), becomes a loss in nn::OwnLoss: Trainer{model, nn::OwnLoss{formula}, optimizer}");
  else if constexpr (!HasLossCall<L>)
    static_assert(
        detail::is_a_loss<L>,
        "a loss is called with a LossCall and returns LossSums: give it LossSums operator()(const LossCall<Scalar, Cpu>&) const");
  else if constexpr (!HasLossWeight<L>)
    static_assert(detail::is_a_loss<L>, "a loss knows its divisor: give it double weight(const LossCall<Scalar, Cpu>&) const");
  else if constexpr (HasIgnoreLabel<L> && !SaysIgnoredLabel<L>)
    static_assert(detail::is_a_loss<L>,
                  "a loss with a member ignore_label says so before a step: give it std::optional<std::int32_t> "
                  "ignored_label() const");
}

/// A loss whose target rows have another length than the outputs: static constexpr long target_length.
template <class L> concept HasTargetLength = requires {
  { L::target_length } -> std::convertible_to<long>;
};
/// Values of a row that a loss with TargetKind::vector compares so many outputs with.
template <class L> constexpr long target_length(long outputs) {
  if constexpr (HasTargetLength<L>) return L::target_length;
  else return outputs;
}
/// A loss that keeps values of its own while it runs: static constexpr long workspace, scalars a sample; it is called with a
/// GraphLossCall (nn/loss/graph_loss.hpp), which says where they are.
template <class L> concept HasLossWorkspace = requires {
  { L::workspace } -> std::convertible_to<long>;
};

/// Numbers that a loss wants where the outputs are (class weights): std::span<const float> table() const.
template <class L> concept HasLossTable = requires(const L& loss) {
  { loss.table() } -> std::convertible_to<std::span<const float>>;
};

/// A loss says its numbers by name: void describe(NamedValues&) const.
template <class L> concept SaysItsValues = requires(const L& loss, NamedValues& to) { loss.describe(to); };
/// What ranks compare of a loss: its kind, what it says of itself, its table and the label that it leaves out.
template <class L> void describe(const L& loss, NamedValues& to) {
  to.of("").add("the loss", detail::bare_name<L>()).of("the loss");
  if constexpr (SaysItsValues<L>) loss.describe(to);
  if constexpr (HasLossTable<L>) {
    const std::span<const float> table = loss.table();
    if (!table.empty()) to.add_hash("the weights", table.data(), table.size_bytes());
  }
  if constexpr (SaysIgnoredLabel<L>)
    if (const std::optional<std::int32_t> label = loss.ignored_label()) to.add(".ignore_label", *label);
}
/// What ranks compare of one of the losses that `owner` adds up: its factor, and what they compare of the loss itself.
template <class On> void describe_part(std::string_view owner, std::size_t number, const On& on, NamedValues& to) {
  to.of(owner).add(text("the factor of loss {}", number + 1), on.factor);
  to.within(text("loss {} of {}", number + 1, owner));
  describe(on.loss, to);
  to.within("");
}

/// The device's copy of a loss's table, made once; who runs the loss keeps one and sets LossCall::table. Nothing on the Cpu.
template <class Loss, class Device> class LossTable {
 public:
  explicit LossTable(const Loss& loss, Device where = {}) {
    if constexpr (HasLossTable<Loss>) {
      const std::span<const float> table = loss.table();
      copy_ = Arena<float, Device>(table.size(), where);
      Copy<Device, Cpu>::run(copy_.data(), table.data(), table.size_bytes(), where);
    }
  }
  const float* data() const { return copy_.data(); }

 private:
  Arena<float, Device> copy_;
};
template <class Loss> class LossTable<Loss, Cpu> {
 public:
  explicit LossTable(const Loss&, Cpu = {}) {}
  static constexpr const float* data() { return nullptr; }
};

/// How an executor calls a loss for the samples from `first` on. With memory of its own where the loss wants that.
template <class Loss, class Scalar, class Device> struct LossCaller {
  LossCaller(long /*batch*/, Device) {}
  LossSums operator()(const Loss& loss, const LossCall<Scalar, Device>& call, long /*first*/) { return loss(call); }
};

/// Where a loss finds its table: the device's copy, else (on the Cpu) its own; null where it is empty. Throws ArgumentError where
/// a device has no copy.
template <class Scalar, class Device> const float* table_of(const LossCall<Scalar, Device>& call, std::span<const float> table) {
  if (table.empty()) return nullptr;
  if constexpr (!std::same_as<Device, Cpu>) {
    if (!call.table)
      throw ArgumentError(
          "a loss has weights that are on the host, the outputs are not: set LossCall::table to a LossTable's data()");
  }
  return call.table ? call.table : table.data();
}

/// A loss that is a mean over samples and values (TargetKind::vector): f(output, target, i, derivative) returns an element's loss
/// and sets its derivative; i modulo the width is the column. Runs where the memory is: see ops/vector_loss.hpp for how f is
/// written.
template <class Scalar, class Device, class Function>
LossSums vector_loss(const LossCall<Scalar, Device>& call, const Function& f) {
  const double sum = ops::vector_loss<Device>(
      ops::VectorLossArguments<Scalar>{call.outputs, call.output_pitch, call.width, call.targets, call.target_pitch, call.count,
                                       call.scale, call.gradient, call.sums, call.values},
      f);
  if (call.sums) return {};
  return {sum, static_cast<double>(call.count) * static_cast<double>(call.width), 0};
}
/// The divisor of such a loss.
template <class Scalar, class Device> double element_weight(const LossCall<Scalar, Device>& call) {
  return static_cast<double>(call.count) * static_cast<double>(call.width);
}

/// Throws ArgumentError for row `row` of a call, whose label is no class.
template <class Scalar, class Device>
void throw_wrong_label(const LossCall<Scalar, Device>& call, long row, std::optional<std::int32_t> ignore) {
  check_labels(call.labels + row, 1, call.width, ignore, call.first * call.labels_each + row, call.labels_each);
}

/// What a loss with TargetKind::label says of the labels.
struct LabelOptions {
  const float* class_weights = nullptr;     ///< factors of the labels' losses, where the outputs are; null: 1 for each
  std::optional<std::int32_t> ignore = {};  ///< samples with this label count nothing
};

/// A loss that is a mean over samples by their labels: f(row) returns a row's loss and sets its derivatives: see
/// ops/label_loss.hpp. Throws ArgumentError for a label that is no class; on a device the loss becomes not a number then: Trainer
/// looks before.
template <class Scalar, class Device, class Function>
LossSums label_loss(const LossCall<Scalar, Device>& call, const Function& f, const LabelOptions& options = {}) {
  ops::CrossEntropyArguments<Scalar> arguments{call.outputs, call.output_pitch, call.width,   call.labels,
                                               call.count,   call.scale,        call.gradient};
  arguments.class_weights = options.class_weights;
  arguments.ignores = options.ignore.has_value();
  arguments.ignored = options.ignore.value_or(0);
  arguments.sums = call.sums;
  arguments.values = call.values;
  const ops::CrossEntropySums s = ops::label_loss<Device>(arguments, f);
  if (s.wrong >= 0) throw_wrong_label(call, s.wrong, options.ignore);
  return {s.loss, s.weight, s.correct};
}

/// Throws ArgumentError for the first of a loss's weights that is negative or no number, or whose products with a loss float has
/// no room for. `name`: "class_weights".
inline void check_weights(const char* loss, const char* name, std::span<const float> weights) {
  for (std::size_t c = 0; c < weights.size(); ++c) {
    const float w = weights[c];
    if (!(w >= 0 && w <= std::numeric_limits<float>::max()))
      throw ArgumentError(text("{}: .{}[{}] is {}: a weight is a finite number, not negative", loss, name, c, w));
    if (w > 0 && !(w >= 1e-18f && w <= 1e18f))
      throw ArgumentError(
          text("{}: .{}[{}] is {}: single precision has no room for sums of such losses; 1 is the usual weight, "
               "and 1e-18 to 1e18 are taken",
               loss, name, c, w));
  }
}
/// Throws ArgumentError where a loss's weights of classes are not one for each of the network's outputs, none of them negative;
/// none fit any network.
inline void check_class_weights(const char* loss, std::span<const float> weights, long classes) {
  if (!weights.empty() && static_cast<long>(weights.size()) != classes)
    throw ArgumentError(
        text("{} has {} class weights for {} outputs: give it one a class, or none", loss, weights.size(), classes));
  check_weights(loss, "class_weights", weights);
  bool any = weights.empty();
  for (const float w : weights) any = any || w > 0;
  if (!any)
    throw ArgumentError(std::string(loss) + ": all .class_weights are 0, so that no sample counts: 1 is the usual weight");
}
/// The divisor of a loss of labels, which are on the host: the sum of their classes' weights. Throws as the loss itself does.
template <class Scalar> double label_weight(const char* loss, const LossCall<Scalar, Cpu>& call, std::span<const float> weights,
                                            std::optional<std::int32_t> ignore) {
  check_class_weights(loss, weights, call.width);
  check_labels(call.labels, call.count, call.width, ignore, call.first * call.labels_each, call.labels_each);
  double sum = 0;
  for (long i = 0; i < call.count; ++i)
    if (!(ignore && call.labels[i] == *ignore)) sum += weights.empty() ? 1.0 : weights[static_cast<std::size_t>(call.labels[i])];
  return sum;
}

/// Makes what a loss wants on the device before the first step.
template <class Device> void prepare_loss() { ops::VectorLossKernels<Device>::prepare(); }

}  // namespace skein::inline SKEIN_ABI::nn
