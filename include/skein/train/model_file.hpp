// SPDX-License-Identifier: Apache-2.0
// What a training is on disk: a checkpoint with a section for each parameter, buffer and optimizer array, by the names of the
// model's table (logical values, so that padding is no part of the format), and the place in the data.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../nn/layer_name.hpp"
#include "../nn/loss/loss.hpp"
#include "../core/named_values.hpp"
#include "../optim/loss_scaler.hpp"
#include "../optim/optimizer.hpp"
#include "../optim/transform/transform.hpp"
#include "../parallel/concepts.hpp"
#include "../plan/program.hpp"
#include "checkpoint.hpp"
#include "history.hpp"
#include "host_copy.hpp"
#include "kept_objects.hpp"
#include "training_position.hpp"
#include "weights_file.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Calls visit(arena, prefix of the section names, entries) for each array of the model: on the model's device.
template <class TrainStep, class Visit> void for_each_arena(TrainStep& train_step, Visit&& visit) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  visit(train_step.whole_parameters(), std::string("parameters/"), Model::program.parameters());
  visit(train_step.whole_buffers(), std::string("buffers/"), Model::program.buffers());
}
/// Is there a section "policy".
template <class TrainStep> inline constexpr bool policy_keeps_state =
    parallel::KeepsState<std::remove_cvref_t<decltype(std::declval<TrainStep&>().policy_state())>>;
/// Is there a section "curvature".
template <class TrainStep> inline constexpr bool keeps_curvature =
    optim::needs_curvature<std::remove_cvref_t<decltype(std::declval<TrainStep&>().optimizer().optimizer())>>;
/// The names of the sections of an optimizer's array.
inline std::string state_prefix(int k) { return "optimizer/" + std::to_string(k) + "/"; }
/// The optimizer's hyper-parameters by name: which optimizer a file is of.
template <class TrainStep> std::string optimizer_lines(TrainStep& train_step) {
  NamedValues values;
  optim::describe(train_step.optimizer().optimizer(), values);
  return values.lines();
}
/// The sections of one array of the model, in host memory, which must live until the file is written.
void add_array(CheckpointWriter& writer, const std::string& prefix, std::span<const plan::Entry> entries,
               std::span<const plan::PathPart> paths, const float* data);
void add_array(CheckpointWriter& writer, const std::string& prefix, std::span<const plan::Entry> entries,
               std::span<const plan::PathPart> paths, const double* data);
/// What is of no network: the steps, the optimizer's values, the place in the data, the history, the callbacks' bytes (what they
/// are is known to the fit that has them), the kept objects.
struct FileRecords {
  std::int64_t steps;
  std::string optimizer, loss, layers;
  const TrainingPosition& place;
  const History& history;
  const std::string& callbacks;
  const KeptObjects& kept;
};
void add_records(CheckpointWriter& writer, const FileRecords& records);
/// Of a save that failed on rank 0: throws FileError where this is that rank, which knows why, else CommError.
[[noreturn]] void fail_save(const std::string& path, const std::string& why);
/// Throws FileError where a file's optimizer is another than this one, of which these are the lines and the number of arrays.
void check_optimizer(CheckpointReader& reader, const std::string& own, int arrays);
/// Which loss a file is of: "CrossEntropy". And throws FileError where it is another one than this.
template <class TrainStep> std::string loss_name() {
  const std::string_view name = nn::detail::kind_of<std::remove_cvref_t<decltype(std::declval<TrainStep&>().loss())>>();
  return std::string(name.substr(0, name.find('<')));
}
void check_loss(CheckpointReader& reader, const std::string& own);
}  // namespace detail

SKEIN_BEGIN_COLD

/// Writes all that a training needs to go on: weights, buffers, optimizer, position, history, callbacks. Collective.
template <class TrainStep> void save_training(const std::string& path, TrainStep& train_step, const TrainingPosition& place,
                                              const History& history, const std::string& callbacks, const KeptObjects& kept) {
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  using Scalar = typename Model::Scalar;
  CheckpointWriter writer;
  std::vector<HostCopy<Scalar, typename Model::device>> copies(2 + static_cast<std::size_t>(train_step.optimizer().arrays()));
  auto copy = copies.begin();
  const auto add = [&](auto arena, const std::string& prefix, std::span<const plan::Entry> entries) {
    detail::add_array(writer, prefix, entries, Model::program.parts(),
                      (copy++)->read(arena.data, arena.size, train_step.model().where()));
  };
  detail::for_each_arena(train_step, add);
  for (int k = 0; k < train_step.optimizer().arrays(); ++k)
    add(train_step.state(k), detail::state_prefix(k), Model::program.parameters());
  detail::add_records(writer, {train_step.steps(), detail::optimizer_lines(train_step), detail::loss_name<TrainStep>(),
                               layers_without_weights(Model::program.ops()), place, history, callbacks, kept});
  if constexpr (Model::scales_loss) writer.add_object("loss_scaler", train_step.loss_scaler());
  if constexpr (detail::keeps_curvature<TrainStep>) writer.add_object("curvature", train_step.curvature().saved());
  if constexpr (detail::policy_keeps_state<TrainStep>) {
    const std::vector<std::byte> bytes = to_bytes(train_step.policy_state());
    writer.add_object("policy_kind", train_step.policy_state().saved_as());
    writer.add_object("policy", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  writer.commit(path);
}

/// Reads what save_training wrote, whole or not at all, and returns the hash of the file; throws FileError, with the path, where
/// it does not fit.
template <class TrainStep> std::uint64_t load_training(const std::string& path, TrainStep& train_step, TrainingPosition& place,
                                                       History& history, std::string& callbacks, KeptObjects& kept) {
  CheckpointReader reader{path};  // every hash is checked before anything is changed
  detail::check_optimizer(reader, detail::optimizer_lines(train_step), train_step.optimizer().arrays());
  detail::check_loss(reader, detail::loss_name<TrainStep>());
  std::int64_t steps = 0;
  TrainingPosition at;
  History past;
  reader.read_object("steps", steps);
  reader.read_object("place", at);
  if (steps < at.first_step || steps > (std::int64_t{1} << 53))
    throw FileError(path, -1, text("says that {} optimizer steps were made: it is damaged", steps));
  reader.read_object("history", past);
  std::string states;
  reader.read_object("callbacks", states);
  KeptObjects objects;
  objects.read(reader);
  std::string policy, kind;  // of a training by another policy: left alone
  if (reader.contains("policy")) reader.read_object("policy", policy);
  if (reader.contains("policy_kind")) reader.read_object("policy_kind", kind);
  using Model = std::remove_cvref_t<decltype(train_step.model())>;
  check_layers(reader, path, layers_without_weights(Model::program.ops()));
  optim::LossScaler scaler;  // of a 16-bit training; the weights are the same in any precision
  if constexpr (Model::scales_loss) scaler = train_step.loss_scaler();
  if (reader.contains("loss_scaler")) reader.read_object("loss_scaler", scaler);
  auto curvature = [&] {
    if constexpr (detail::keeps_curvature<TrainStep>) {
      auto saved = train_step.curvature().saved();
      const auto own = saved;
      reader.read_object("curvature", saved);
      if (!saved.same_sizes(own)) throw FileError(path, -1, "its factors of layers (Kfac) have other sizes: it is damaged");
      return saved;
    } else {
      return 0;
    }
  }();
  // First into memory of our own, so that a file of another network changes nothing. Gaps stay zero.
  using Scalar = typename Model::Scalar;
  std::vector<Arena<Scalar>> staged;
  const auto stage = [&](std::size_t size, const std::string& prefix, std::span<const plan::Entry> entries) {
    staged.emplace_back(size);
    for (const plan::Entry& e : entries)
      reader.read(prefix + std::string(std::string_view(Model::program.name(e))), e.extents, staged.back().data() + e.offset,
                  row_pitch(e.extents.last()));
  };
  detail::for_each_arena(train_step, [&](auto arena, const std::string& prefix, std::span<const plan::Entry> entries) {
    stage(arena.size, prefix, entries);
  });
  for (int k = 0; k < train_step.optimizer().arrays(); ++k)
    stage(static_cast<std::size_t>(Model::sizes.stored), detail::state_prefix(k), Model::program.parameters());
  reader.finish();
  if constexpr (detail::policy_keeps_state<TrainStep>)
    if (!policy.empty() && kind == train_step.policy_state().saved_as())
      from_bytes(std::as_bytes(std::span(policy)), train_step.policy_state(), path, 0);
  [[maybe_unused]] const auto lease = train_step.model().modify();
  auto next = staged.begin();
  detail::for_each_arena(train_step, [&](auto arena, const std::string&, std::span<const plan::Entry>) {
    HostCopy<Scalar, typename Model::device>::write(arena.data, (next++)->data(), arena.size, train_step.model().where());
  });
  for (int k = 0; k < train_step.optimizer().arrays(); ++k) train_step.set_state(k, (next++)->data());
  if constexpr (detail::keeps_curvature<TrainStep>) train_step.curvature().take(std::move(curvature));
  train_step.scatter();
  train_step.set_steps(steps);
  if constexpr (Model::scales_loss) train_step.loss_scaler() = scaler;
  place = at;
  history = past;
  callbacks = states;
  kept = objects;
  return reader.hash();
}

/// Each rank of such a policy has all parameters.
template <class PolicyState> inline constexpr bool has_whole_model = !parallel::SharesBatches<PolicyState>;

/// Writes the parameters and buffers of a model, which load_weights reads. A call of this rank alone. Throws FileError.
template <class Model> void save_weights(const std::string& path, const Model& model, const KeptObjects& kept = {}) {
  using Scalar = typename Model::Scalar;
  CheckpointWriter writer;
  kept.write(writer);
  writer.add_object("layers", layers_without_weights(Model::program.ops()));
  HostCopy<Scalar, typename Model::device> parameters, buffers;
  const auto add = [&](auto& copy, const auto& arena, const std::string& prefix, std::span<const plan::Entry> entries) {
    detail::add_array(writer, prefix, entries, Model::program.parts(), copy.read(arena.data, arena.size, model.where()));
  };
  add(parameters, model.parameters(), "parameters/", Model::program.parameters());
  add(buffers, model.buffers(), "buffers/", Model::program.buffers());
  writer.commit(path);
}

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "model_file.ipp"
#endif
