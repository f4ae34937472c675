// SPDX-License-Identifier: Apache-2.0
// Does a data set fit the network and the loss: shapes, labels or target vectors. What does not is an exception that says which
// data set, what it has and what is wanted.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "../data/view.hpp"
#include "../nn/check_batch.hpp"
#include "../nn/loss/loss_columns.hpp"
#include "../nn/memory_requirements.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// "Shape<2>, Shape<28, 28, 1>".
inline std::string list(const auto& all, const auto& text_of) {
  TextList texts;
  for (const auto& one : all) texts.add(text_of(one));
  return texts.text();
}
/// Are samples of these extents what an Input takes: as Model's own input.
inline bool fits(Extents given, Extents wanted) {
  while (given.rank > 1 && given.last() == 1) --given.rank;
  while (wanted.rank > 1 && wanted.last() == 1) --wanted.rank;
  if (wanted.flat()) return given.count() == wanted.count();
  for (int i = 0; i < wanted.rank; ++i)
    if (given.rank != wanted.rank || given[i] != wanted[i]) return false;
  return true;
}
}  // namespace detail

/// Throws ShapeError where joined sets are not, one by one, what the Inputs of a Graph take. As many sets as Inputs: else one set
/// has the values of several.
inline void check_parts(const data::DatasetView& data, std::span<const Extents> inputs, const char* which) {
  const auto& sets = data.parts();
  bool right = true;
  for (std::size_t i = 0; sets.size() == inputs.size() && i < inputs.size(); ++i)
    right = right && detail::fits(sets[i].sample, inputs[i]);
  if (!right)
    throw ShapeError(
        text("the {} data set joins samples of {}, the Inputs of the network are {}: join the sets in the order of "
             "the Inputs",
             which, detail::list(sets, [](const data::JoinedPart& set) { return nn::shape_text(set.sample); }),
             detail::list(inputs, nn::shape_text)));
}
/// Throws ShapeError where the targets of joined sets are not, one by one, what the losses of several outputs compare with.
inline void check_target_parts(const data::DatasetView& data, std::span<const nn::LossColumns> losses, const char* which) {
  std::vector<data::Target> targets;
  for (const data::JoinedPart& set : data.parts())
    if (set.target.kind != data::TargetKind::none) targets.push_back(set.target);
  const auto values = [](long n) { return n == 1 ? std::string("a value") : skein::text("{} values", n); };
  const auto label = [](long classes) { return classes > 0 ? text("a label of {} classes", classes) : std::string("a label"); };
  bool right = true;
  for (std::size_t i = 0; targets.size() == losses.size() && i < losses.size(); ++i) {
    const data::Target& target = targets[i];
    right =
        right && (losses[i].labels ? target.kind == data::TargetKind::label && target.each == 1 && target.count <= losses[i].width
                                   : target.kind == data::TargetKind::vector && target.count == losses[i].values);
  }
  if (!right)
    throw ShapeError(text(
        "the targets of the {} data set are {}, in the order of the joined sets; the losses of the graph_loss take {}: give "
        "the losses in the order of the sets",
        which,
        detail::list(targets,
                     [&](const data::Target& t) { return t.kind == data::TargetKind::label ? label(t.count) : values(t.count); }),
        detail::list(losses, [&](const nn::LossColumns& l) { return l.labels ? label(l.width) : values(l.values); })));
}

/// `which`: "training", for the message.
template <class Model> void check_samples(const data::DatasetView& data, const char* which) {
  if (!data) throw ArgumentError(std::string("the ") + which + " data set is missing: give one");
  nn::check_extents(data.sample_extents(), Model::input::extents, std::string("the ") + which + " data set's samples",
                    "from_tensors(x, sk::Extents{...}, y) with the extents ");
  check_parts(data, nn::input_parts<typename Model::network>(), which);
  if (is_tokens<typename Model::input> && !data.gives_tokens())
    throw ArgumentError(std::string("the model takes tokens, the ") + which +
                        " data set's samples are numbers: give it 32-bit integers, as from_tensors of integers does");
  if (!is_tokens<typename Model::input> && !data.gives_numbers())
    throw ArgumentError(std::string("the model calculates with numbers, the ") + which +
                        " data set's samples are tokens: give the model the input Tokens<T>, and a layer that looks them up");
}

/// Throws ArgumentError where labels are not in the form that the loss takes: join() makes values of them, for a graph_loss.
inline void check_labels_joined(const data::DatasetView& data, bool of_graph_loss, const std::string& set) {
  if (of_graph_loss && data.target().kind == data::TargetKind::label)
    throw ArgumentError(text(
        "a graph_loss compares with a row of values for each sample, and {} has labels that are in no row: join it with the sets "
        "of the other Inputs, data::join(pictures, numbers), or alone, data::join(set)",
        set));
  if (of_graph_loss || data.target().kind != data::TargetKind::vector) return;
  for (const data::JoinedPart& part : data.parts())
    if (part.target.kind == data::TargetKind::label)
      throw ArgumentError(
          set +
          " is joined, and data::join makes values of the labels: graph_loss gives each part of them a loss of its "
          "own, nn::graph_loss<Model>(nn::on<output>(nn::CrossEntropy{}))");
}

/// Throws ArgumentError where a data set's samples or targets are not what the model and the loss take.
template <class Model, class Loss> void check_data(const data::DatasetView& data, const char* which) {
  check_samples<Model>(data, which);
  const std::string set = std::string("the ") + which + " data set";
  if (Loss::target == nn::TargetKind::label || nn::HasLossColumns<Loss>) check_labels_joined(data, nn::HasLossColumns<Loss>, set);
  if constexpr (Loss::target == nn::TargetKind::label) {
    if (data.target().kind != data::TargetKind::label)
      nn::refuse_targets(Loss::target, data.target().kind, set, data.target().count);
    constexpr long each = nn::labels_each(Model::output_extents);
    if (data.target().each != each)
      throw ShapeError(
          skein::text("{} has {} labels a sample, the network's output {} has {} positions, each with a label of its own", set,
                      data.target().each, nn::shape_text(Model::output_extents), each));
  } else {
    if (data.target().kind != data::TargetKind::vector)
      nn::refuse_targets(Loss::target, data.target().kind, set, data.target().count);
    constexpr long wanted = nn::target_length<Loss>(Model::sizes.output.count());
    if (data.target().count != wanted) nn::refuse_target_length(data.target().count, wanted, Model::sizes.output.count(), set);
    if constexpr (nn::HasLossColumns<Loss>) check_target_parts(data, Loss::columns, which);
  }
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
