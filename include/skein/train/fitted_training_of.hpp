// SPDX-License-Identifier: Apache-2.0
// FittedTrainingOf: a train step, of whatever network and policy, as the loop of a fit sees it.
#pragma once
#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

#include "../nn/layer_name.hpp"
#include "../parallel/concepts.hpp"
#include "agreement.hpp"
#include "fitted_training.hpp"
#include "host_copy.hpp"
#include "not_finite.hpp"
#include "part_not_finite.hpp"
#include "predict.hpp"
#include "replicas.hpp"
#include "saved_arrays.hpp"
#include "weights_copy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// A loss of values that counts correct answers all the same, one a sample, says so: bool has_accuracy() const.
template <class L> concept SaysItHasAccuracy = requires(const L& loss) {
  { loss.has_accuracy() } -> std::convertible_to<bool>;
};
/// Is there an accuracy beside this loss.
template <class L> bool has_accuracy(const L& loss) {
  if constexpr (SaysItHasAccuracy<L>) return loss.has_accuracy();
  else return L::target == nn::TargetKind::label;
}

/// Refers to the train step.
template <class TrainStep> class FittedTrainingOf final : public FittedTraining<typename TrainStep::Scalar> {
  using Scalar = typename TrainStep::Scalar;
  using Model = std::remove_cvref_t<decltype(std::declval<TrainStep&>().model())>;
  using Loss = std::remove_cvref_t<decltype(std::declval<TrainStep&>().loss())>;
  using PolicyState = typename TrainStep::PolicyState;
  static constexpr bool labels = Loss::target == nn::TargetKind::label, host = on_host<typename TrainStep::Device>;
  /// Steps can be left out before they are made. The stages of a pipeline update by themselves.
  static constexpr bool leaves_out = host && !parallel::SplitsModel<PolicyState>;

 public:
  /// `kept`: the weights that callbacks have kept, which live longer than this.
  FittedTrainingOf(TrainStep& train_step, WeightsCopy<TrainStep>& kept)
      : train_step_(train_step), kept_(kept), saved_(train_step) {}
  FitFacts facts() override {
    constexpr long rows = nn::rows_of_sample<Loss>(Model::output_extents), width = TrainStep::Width / rows;
    const auto& state = train_step_.policy_state();
    FitFacts f{.rank = state.rank(),
               .ranks = state.ranks(),
               .local_ranks = state.local_ranks(),
               .part = state.rank(),
               .parts = state.ranks(),
               .virtual_shards = PolicyState::virtual_shards,
               .local_sums = PolicyState::local_sums,
               .labels = has_accuracy(train_step_.loss()),
               .labels_each = labels ? nn::labels_each(Model::output_extents) : 1,
               .weight_counts = weight_counts(),
               .host = host,
               .leaves_out = leaves_out,
               .sees_all_sums = leaves_out && !PolicyState::local_sums && (state.ranks() == 1 || state.synchronizes_gradients()),
               .in_step = !PolicyState::simulated_time && state.same_weights() == parallel::SameWeights::after_step,
               .asks = !PolicyState::simulated_time,
               .serves = parallel::ServesUpdates<PolicyState>,
               .same_weights = state.same_weights(),
               .metric_rows = rows,
               .probabilities = nn::output_kind_of<typename Model::network>() == nn::OutputKind::probabilities,
               .metric_width = static_cast<int>(width),
               .metric_values = labels ? 0 : static_cast<int>(nn::target_length<Loss>(width)),
               .threads = train_step_.threads(),
               .seed = train_step_.model().seed(),
               .loader = device_loader_options<Model>()};
    if constexpr (parallel::SharesBatches<PolicyState>)
      f.part = state.batch_part(), f.parts = state.batch_parts(), f.scores = state.scores(), f.in_step = state.in_step();
    return f;
  }
  void reserve(const ExecutorOptions& options) override { train_step_.reserve(options); }
  void prepare(long count) override { train_step_.prepare(count); }
  long capacity() override { return train_step_.capacity(); }
  void step(const data::Batch<Scalar>& batch, const optim::StepOptions& options) override {
    optim::StepOptions possible = options;
    possible.finite = options.finite && leaves_out;
    sums_ = train_step_.step(batch, possible);
  }
  void give_up_accumulation() override { train_step_.give_up_accumulation(); }
  std::int64_t updates_of(long samples) override { return train_step_.updates_of(samples); }
  void evaluate(const data::Batch<Scalar>& batch, bool more) override { sums_ = train_step_.evaluate(batch, more); }
  nn::LossSums sums() override { return sums_; }
  bool left_out() override { return train_step_.left_out(); }
  bool scales_loss() override {
    if constexpr (Model::scales_loss) return train_step_.loss_scaler().active();
    else return false;
  }
  bool scale_can_fall() override {
    if constexpr (Model::scales_loss) return train_step_.loss_scaler().can_fall();
    else return false;
  }
  double gradient_norm([[maybe_unused]] bool made) override {
    using Optimizer = std::remove_cvref_t<decltype(train_step_.optimizer().optimizer())>;
    if constexpr (leaves_out && PolicyState::virtual_shards == 0)
      return made && optim::has_stages<Optimizer> ? 0 : norm_of_gradients(train_step_);
    else return train_step_.gradient_norm();
  }
  std::string first_not_finite(const data::Batch<Scalar>& batch) override {
    if constexpr (leaves_out) return first_layer_not_finite(train_step_, batch);
    else return {};
  }
  std::string part_not_finite() override { return first_part_not_finite(train_step_, host_); }
  void keep_weights() override { kept_.keep(train_step_); }
  void forget_kept_weights() override { kept_ = {}; }
  void give_back_weights() override { kept_.give_back(train_step_); }
  /// On a server: if those that train give kept weights back, which they say in FitLoop::end.
  void take_kept_weights() {
    auto lease = train_step_.model().modify();
    if (train_step_.policy_state().texts_of_all({}).front().empty()) lease.unchanged();
    else train_step_.policy_state().start();
  }
  nn::LossSums totals() override { return train_step_.totals(); }
  void set_totals(const nn::LossSums& sums) override { train_step_.set_totals(sums); }
  std::int64_t steps() override { return train_step_.steps(); }
  double rate() override { return static_cast<double>(train_step_.optimizer().optimizer().lr); }
  std::string_view note() override { return train_step_.note(); }
  void epoch_begins(std::int64_t number) override { train_step_.policy_state().epoch_begins(number); }
  void epoch_ends(std::int64_t number) override {
    if (auto lease = train_step_.model().modify(); !train_step_.policy_state().epoch_ends(number)) lease.unchanged();
  }
  void finish([[maybe_unused]] int signal) override {
    if constexpr (parallel::ServesUpdates<PolicyState>) train_step_.policy_state().set_signal(signal);
    if (auto lease = train_step_.model().modify(); !train_step_.policy_state().finish()) lease.unchanged();
  }
  int signal_of_servers() override {
    if constexpr (parallel::ServesUpdates<PolicyState>) return train_step_.policy_state().signal();
    else return 0;
  }
  void average_buffers() override { train_step_.policy_state().average_buffers(); }
  void reduce(std::span<double> values) override { train_step_.policy_state().reduce(values); }
  double exposed_seconds() override {
    double seconds = train_step_.policy_state().exposed_seconds();
    if constexpr (keeps_curvature<TrainStep> && !PolicyState::simulated_time)  // there the world's clock has them
      seconds += train_step_.curvature().exposed_seconds();
    return seconds;
  }
  bool all_met() override { return !PolicyState::simulated_time && train_step_.policy_state().all_met(); }
  void compare_weights([[maybe_unused]] std::string_view when) override {
    if constexpr (may_have_others<PolicyState>)
      if (train_step_.policy_state().same_weights() != parallel::SameWeights::never) check_replicas(train_step_, when);
  }

  // What files ask.
  int rank() const override { return train_step_.policy_state().rank(); }
  int ranks() const override { return train_step_.policy_state().ranks(); }
  void set_steps(std::int64_t n) override { train_step_.set_steps(n); }
  std::string optimizer_lines() override {
    NamedValues values;
    optim::describe(train_step_.optimizer().optimizer(), values);
    return values.lines();
  }
  int state_arrays() override { return train_step_.optimizer().arrays(); }
  std::string loss_name() override { return std::string(nn::detail::bare_name<Loss>()); }
  std::span<const plan::LayerNode> layers() override { return Model::program.layers(); }
  const char* placement() override {
    if constexpr (parallel::SplitsModel<PolicyState>) return "staged";
    else return train_step_.slices_state() ? "sliced" : "replicated";
  }
  bool has_kept_weights() override { return !kept_.empty(); }
  void save_to(SectionSink& sink, bool whole) override { saved_.save_to(sink, whole, kept_); }
  void saved() override { saved_.saved(); }
  void load_from(SectionSource& source) override { saved_.load_from(source, kept_); }
  void start_again() override {
    const auto lease = train_step_.model().modify();
    train_step_.policy_state().start();
    saved_.take_own();
  }
  std::vector<std::string> texts_of_all(const std::string& own) override { return train_step_.policy_state().texts_of_all(own); }
  comm::RankNames rank_names() const override { return train_step_.policy_state().rank_names(); }
  bool has_servers() const override { return parallel::ServesUpdates<typename TrainStep::PolicyState>; }
  bool simulated_time() const override { return PolicyState::simulated_time; }

  std::int64_t ignored_labels(const data::Batch<Scalar>& batch) override {
    const std::optional<std::int32_t> ignored = nn::ignored_label(train_step_.loss());
    if (!labels || !ignored) return 0;
    const std::int32_t* const end = batch.labels + batch.count * nn::rows_of_sample<Loss>(Model::output_extents);
    return std::count(batch.labels, end, *ignored);
  }
  /// A row a label, and what they are compared with. To metrics a label that the loss ignores is -1.
  void feed(std::vector<AnyMetric>& metrics, const data::Batch<Scalar>& batch) override {
    constexpr long rows = nn::rows_of_sample<Loss>(Model::output_extents), width = TrainStep::Width / rows;
    const Scalar* values = host_.read(train_step_.outputs(), static_cast<std::size_t>(batch.count * TrainStep::OutputPitch),
                                      train_step_.model().where());
    const Rows<Scalar> outputs{values, rows > 1 ? width : TrainStep::OutputPitch, batch.count * rows, static_cast<int>(width)};
    for (auto& m : metrics) {
      if constexpr (labels) m.add(outputs, labels_for_metrics(batch.labels, static_cast<std::size_t>(batch.count * rows)));
      else
        m.add(outputs,
              Rows<Scalar>{batch.targets, batch.target_pitch, batch.count, static_cast<int>(nn::target_length<Loss>(width))});
    }
  }

 private:
  bool weight_counts() {
    if constexpr (labels && nn::HasLossTable<Loss>)
      return nn::ignored_label(train_step_.loss()).has_value() && train_step_.loss().table().empty();
    else return false;
  }
  Labels labels_for_metrics(const std::int32_t* own, std::size_t count) {
    const std::optional<std::int32_t> ignored = nn::ignored_label(train_step_.loss());
    if (!ignored) return {own, count};
    labels_.assign(own, own + count);
    std::replace(labels_.begin(), labels_.end(), *ignored, std::int32_t{-1});
    return {labels_.data(), count};
  }

  TrainStep& train_step_;
  typename TrainStep::Sums sums_{};
  HostCopy<Scalar, typename Model::device> host_;
  std::vector<std::int32_t> labels_;  // for metrics, where the loss ignores one
  WeightsCopy<TrainStep>& kept_;
  SavedArrays<TrainStep> saved_;
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
