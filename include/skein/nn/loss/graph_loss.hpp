// SPDX-License-Identifier: Apache-2.0
// GraphLoss: a loss for each output of a Graph, added up with factors:
//
//     const auto loss = nn::graph_loss<Model>(nn::on<digit>(nn::CrossEntropy{}), nn::on<parity>(nn::CrossEntropy{}, 0.5));
//     sk::Trainer trainer{model, loss, optim::Adam{}};
//
// What it compares with is a row of values: one part for each loss, in the order in which they are given. A loss of labels has a
// class number there, a loss of targets as many values as the output. Not included by skein/skein.hpp.
#pragma once
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "../../ops/elementwise.hpp"
#include "../../ops/for_each.hpp"
#include "../graph.hpp"
#include "check_targets.hpp"
#include "loss.hpp"
#include "loss_columns.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The loss of the output of that name, and its factor in the sum.
template <class Name, class L> struct LossOn {
  using name = Name;
  using loss_type = L;
  L loss;
  double factor = 1;
};
/// A loss for the output Name.
template <class Name, class L> LossOn<Name, L> on(L loss, double factor = 1) { return {std::move(loss), factor}; }

namespace detail {
/// Adds the sums of one part, on a device, and leaves zeros for the next.
struct AddPartSums {
  double *sums, *part;
  double factor, weight;
  bool counts_correct;
  constexpr void operator()(long) const {
    if (factor != 0) sums[0] += factor * part[0];
    sums[1] += weight;
    if (counts_correct) sums[2] += part[2];
    part[0] = part[1] = part[2] = 0;
  }
};
/// A Graph that is not made of its items is refused by its model.
template <class Network> constexpr bool has_items() {
  if constexpr (GraphLike<Network>) return Network::sound;
  else return false;
}
template <class Name, class Network, class In> constexpr OutputColumns columns_in() {
  if constexpr (has_items<Network>()) return output_columns<Name, Network, In>();
  else return {};
}
/// Outputs of a network to which a GraphLoss has given a loss: each, once.
template <std::size_t N> constexpr bool all_known(const std::array<OutputColumns, N>& outputs) {
  for (const OutputColumns& o : outputs)
    if (o.number < 0) return false;
  return true;
}
template <std::size_t N> constexpr bool each_once(const std::array<OutputColumns, N>& outputs, int count) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (outputs[i].number == outputs[j].number) return false;
  return static_cast<int>(N) == count;
}
/// A class number is of a whole output: whoever has a loss of labels has one position.
template <std::size_t N>
constexpr bool one_position_a_label(const std::array<OutputColumns, N>& outputs, const std::array<bool, N>& labels) {
  for (std::size_t i = 0; i < N; ++i)
    if (labels[i] && outputs[i].positions > 1) return false;
  return true;
}
template <class Network, class In, class... On> consteval bool assert_graph_loss() {
  constexpr std::array<OutputColumns, sizeof...(On)> outputs{columns_in<typename On::name, Network, In>()...};
  if constexpr (!GraphLike<Network>)
    static_assert(GraphLike<Network>, "graph_loss: the model's network is no Graph: give it one loss");
  else if constexpr (!has_items<Network>()) return true;
  else if constexpr (!all_known(outputs)) static_assert(all_known(outputs), "graph_loss: the network has no Output of this name");
  else if constexpr (!each_once(outputs, output_count<Network, In>()))
    static_assert(each_once(outputs, output_count<Network, In>()),
                  "graph_loss: each Output of the network has one loss; with the factor 0 it does not count");
  else if constexpr (constexpr std::array<bool, sizeof...(On)> labels{On::loss_type::target == TargetKind::label...};
                     !one_position_a_label(outputs, labels))
    static_assert(one_position_a_label(outputs, labels),
                  "graph_loss: a loss of labels takes one class number a sample here, and this output has several positions, as "
                  "(T, N) has: let it end flat, or give the network this one Output, and the trainer the loss itself");
  else (assert_outputs<typename WriterOf<typename On::name, typename Network::graph_items>::type, typename On::loss_type>(), ...);
  return true;
}
}  // namespace detail

/// The call of a loss that keeps values of its own while it runs. `workspace`: GraphLoss::workspace scalars a sample.
template <class Scalar, class Device> struct GraphLossCall : LossCall<Scalar, Device> {
  Scalar* workspace = nullptr;
  double* part = nullptr;  ///< of a device: three zeros
};

namespace detail {
/// loss(call) with `values` scalars of its own, which end with the call.
template <class Loss, class Scalar, class Device>
LossSums call_with_memory(const Loss& loss, const LossCall<Scalar, Device>& call, long values) {
  Arena<Scalar, Device> memory(static_cast<std::size_t>(values));
  Arena<double, Device> sums(on_host<Device> ? 0 : 3);
  GraphLossCall<Scalar, Device> with{call};
  with.workspace = memory.data();
  with.part = sums.data();
  return loss(with);
}
}  // namespace detail

/// The sum of factor times loss over the outputs of a network that is a Graph. It is a mean over samples: a part's own mean over
/// its values is taken, weights of classes multiply what a sample counts, and labels that are left out count nothing, while the
/// divisor stays the number of samples. Throws as the parts do, and ArgumentError for a factor that is no finite number.
template <class Model, class... On> class GraphLoss {
  using Network = typename Model::network;
  using Input = typename Model::input;
  static constexpr int parts = sizeof...(On);
  using Indices = std::make_index_sequence<sizeof...(On)>;
  static constexpr std::array<OutputColumns, sizeof...(On)> outputs{detail::columns_in<typename On::name, Network, Input>()...};
  static_assert(detail::assert_graph_loss<Network, Input, On...>());

 public:
  static constexpr TargetKind target = TargetKind::vector;
  /// Where each part is.
  static constexpr std::array<LossColumns, sizeof...(On)> columns = [] {
    std::array<LossColumns, sizeof...(On)> c{};
    constexpr bool labels[] = {On::loss_type::target == TargetKind::label...};
    long at = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      c[i] = {outputs[i].begin, outputs[i].count, at, labels[i] ? 1 : outputs[i].count, labels[i]};
      at += c[i].values;
    }
    return c;
  }();
  /// The columns of the output of that name.
  template <class Name> static constexpr LossColumns columns_of() {
    return columns[static_cast<std::size_t>(nn::detail::place_of<Name, typename On::name...>())];
  }
  /// What the loss of the output of that name leaves out.
  template <class Name> std::optional<std::int32_t> ignored_label_of() const {
    return nn::ignored_label(std::get<nn::detail::place_of<Name, typename On::name...>()>(on_).loss);
  }
  /// What the output of that name is, by its last layer.
  template <class Name> static constexpr OutputKind output_kind =
      output_kind_of<typename detail::WriterOf<Name, typename Network::graph_items>::type>();
  static constexpr long target_length = columns.back().target + columns.back().values;
  /// The accuracy is that of the labels of a network's one output; of several each has a metric.
  static constexpr bool counts_correct = parts == 1 && columns.front().labels;
  /// Whether correct answers a sample are an accuracy: not where labels are left out, since nobody counts those.
  bool has_accuracy() const { return counts_correct && !nn::ignored_label(std::get<0>(on_).loss); }
  /// Scalars a sample: an output of one part, its gradient, a label.
  static constexpr long workspace = [] {
    long widest = 0;
    for (const LossColumns& c : columns) widest = row_pitch(c.width) > widest ? row_pitch(c.width) : widest;
    return whole_line(2 * widest + 1);
  }();

  void describe(NamedValues& to) const {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) { describe_part("graph_loss", I, std::get<I>(on_), to); });
    to.of("the loss");
  }
  explicit GraphLoss(On... on) : on_(std::move(on)...) {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if (const double factor = std::get<I>(on_).factor; !std::isfinite(factor))
        throw ArgumentError(text("graph_loss: the factor of loss {} is {}", I + 1, factor));
      starts_[I] = table_.size();
      if constexpr (HasLossTable<typename TypeAt<List<On...>, I>::loss_type>) {
        const std::span<const float> t = std::get<I>(on_).loss.table();
        table_.insert(table_.end(), t.begin(), t.end());
      }
    });
  }

  /// The parts' weights of classes, one after the other.
  std::span<const float> table() const { return table_; }
  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const { return element_weight(call); }
  template <class Scalar>
  static void check_targets(const Scalar* targets, long pitch, long /*width*/, long count, const SampleNames& names) {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      nn::check_targets<typename TypeAt<List<On...>, I>::loss_type>(targets + columns[I].target, pitch, columns[I].values, count,
                                                                    names);
    });
  }

  /// Throws ArgumentError for the first class number among the targets that is no class, and that its loss does not leave out.
  template <class Scalar>
  void check_class_numbers(const Scalar* targets, long pitch, long count, const SampleNames& names) const {
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) { check_classes<I>(targets, pitch, count, names); });
  }

  /// With memory of this call.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    return detail::call_with_memory(*this, call, workspace * call.count);
  }
  template <class Scalar, class Device> LossSums operator()(const GraphLossCall<Scalar, Device>& call) const {
    LossSums all{.loss = 0, .weight = on_host<Device> ? weight(call) : 0.0};
    each([&]<std::size_t I>(std::integral_constant<std::size_t, I>) { all += part<I>(call); });
    return all;
  }

 private:
  template <class F> static constexpr void each(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const int done[] = {(f(std::integral_constant<std::size_t, I>{}), 0)...};
      (void)done;
    }
    (Indices{});
  }

  /// The class numbers of one loss. (A function of its own: nvcc 13 does not take a loop under "if constexpr" in the lambda.)
  template <std::size_t I, class Scalar>
  void check_classes(const Scalar* targets, long pitch, long count, const SampleNames& names) const {
    if constexpr (columns[I].labels) {
      for (long i = 0; i < count; ++i) {
        const Scalar value = targets[i * pitch + columns[I].target];
        const std::int32_t label = detail::class_number(value);
        if (label == detail::no_class) detail::refuse_class_number(names(i), value, columns[I].width);
        check_labels(&label, 1, columns[I].width, ignored_label(std::get<I>(on_).loss), i, 1,
                     {names.indices ? names.indices + i : nullptr, names.set});
      }
    }
  }

  /// One loss, on outputs that lie alone, and its gradient into the row. Returns its part of the sums but the weight; nothing on
  /// a device.
  template <std::size_t I, class Scalar, class Device> LossSums part(const GraphLossCall<Scalar, Device>& call) const {
    constexpr LossColumns c = columns[I];
    constexpr long pitch = row_pitch(c.width);
    const auto& [loss, factor] = std::get<I>(on_);
    // The mean over the part's values, times what the whole row is divided by.
    const double share = factor * static_cast<double>(call.width) / static_cast<double>(c.values);
    LossCall<Scalar, Device> own = call;
    Scalar* outputs = call.workspace;                 // (count, width)
    Scalar* gradient = outputs + call.count * pitch;  // likewise
    Scalar* labels = gradient + call.count * pitch;   // (count), in place of scalars
    ops::copy_rows<Device>(outputs, pitch, call.outputs + c.output, call.output_pitch, call.count, c.width);
    own.outputs = outputs;
    own.output_pitch = pitch;
    own.width = c.width;
    own.targets = call.targets + c.target;
    own.scale = static_cast<Scalar>(static_cast<double>(call.scale) * share);
    own.gradient = call.gradient && factor != 0 ? gradient : nullptr;  // 0 times what is not finite would be no number
    own.table = call.table ? call.table + starts_[I] : nullptr;
    own.sums = call.part;
    if constexpr (c.labels) {
      own.labels = reinterpret_cast<std::int32_t*>(labels);
      ops::for_each<Device>(
          call.count, detail::ClassNumbers<Scalar>{own.targets, call.target_pitch, reinterpret_cast<std::int32_t*>(labels)});
      if constexpr (on_host<Device>)
        for (long i = 0; i < call.count; ++i)
          if (own.labels[i] == detail::no_class)
            detail::refuse_class_number(SampleNames{}(call.first + i), own.targets[i * call.target_pitch], c.width);
    }
    const LossSums sums = loss(own);
    if (factor == 0) ops::fill<Device>(gradient, Scalar(0), call.count * pitch);
    if (call.gradient) ops::copy_rows<Device>(call.gradient + c.output, call.output_pitch, gradient, pitch, call.count, c.width);
    if constexpr (on_host<Device>) {
      return {.loss = factor == 0 ? 0 : share * sums.loss, .correct = counts_correct ? sums.correct : 0};
    } else {
      const double counted = I == 0 ? element_weight(call) : 0.0;
      ops::for_each<Device>(1, detail::AddPartSums{call.sums, call.part, share, counted, counts_correct});
      return {};
    }
  }

  std::tuple<On...> on_;
  std::array<std::size_t, sizeof...(On)> starts_{};
  std::vector<float> table_;
};

/// The memory of all samples of a batch, made once.
template <HasLossWorkspace Loss, class Scalar, class Device> struct LossCaller<Loss, Scalar, Device> {
  LossCaller(long batch, Device where)
      : memory(static_cast<std::size_t>(Loss::workspace * batch), where), part(on_host<Device> ? 0 : 3, where) {}
  LossSums operator()(const Loss& loss, const LossCall<Scalar, Device>& call, long first) {
    GraphLossCall<Scalar, Device> with{call};
    with.workspace = memory.data() + first * Loss::workspace;
    with.part = part.data();
    return loss(with);
  }
  Arena<Scalar, Device> memory;
  Arena<double, Device> part;
};

/// A GraphLoss of a model's outputs.
template <class Model, class... On> GraphLoss<Model, On...> graph_loss(On... on) {
  return GraphLoss<Model, On...>(std::move(on)...);
}

}  // namespace skein::inline SKEIN_ABI::nn
