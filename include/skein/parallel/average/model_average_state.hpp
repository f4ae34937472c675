// SPDX-License-Identifier: Apache-2.0
// ModelAveragePolicyState: a training by ModelAverage on one rank: which part of the weights is averaged in which step, what is
// under way, what of it a file has.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../device/copy.hpp"
#include "../../optim/transform/transform.hpp"
#include "../comm_policy_state.hpp"
#include "averaged_fragment.hpp"
#include "check_model_average.hpp"
#include "model_average_options.hpp"
#include "outer_memory.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The state of a training by ModelAverage on one rank: what travels, and the outer optimizer's memory.
template <class When, class Outer, class Comm, class Scalar, class Device> class ModelAveragePolicyState
    : public CommPolicyState<Comm, Scalar, Device> {
  using Base = CommPolicyState<Comm, Scalar, Device>;
  using Base::replica, Base::several;

 public:
  using Base::comm;
  static constexpr Capabilities capabilities =
      Base::capabilities | Capabilities{Capability::averages_weights, Capability::keeps_state};
  static constexpr bool local_sums = true;
  static constexpr bool has_outer = !std::same_as<Outer, PlainAverage>;
  static_assert(!optim::has_stages<Outer> && !optim::HasClipNorm<Outer>,
                "an outer optimizer of ModelAverage is one pass over a fragment: its chain takes elementwise transforms alone");
  using Request = decltype(std::declval<Comm&>().start_all_reduce(std::declval<DeviceSpan<Scalar, Device>>(), Sum{}));

  ModelAveragePolicyState(Comm& comm, const ModelAverageOptions& options, const Outer& outer,
                          const Replica<Scalar, Device>& replica)
      : Base(comm, replica), options_(options), outer_(outer, replica.stored, replica.where) {
    detail::check_model_average<When>(options, outer);
    cut();
  }

  void start() {
    this->check_place("ModelAverage");
    before_save();  // what a fit that an exception ended has left under way is a sum of other weights
    anchored_ = false;
    for (Fragment& f : fragments_) f.samples = samples_, f.averaged = step_, f.arrived = false;
    if (auto loaded = std::exchange(loaded_, {})) take_loaded(*loaded);
    if (!several()) return;
    comm().assert_same("the models of ModelAverage", common_values());
    this->broadcast_weights();
  }

  bool before_step(std::int64_t step) {
    if constexpr (has_outer)
      if (step > options_.first && !std::exchange(anchored_, true)) outer_.set_anchor(replica().parameters.data);
    return false;
  }
  bool after_step(const StepDone& done) {
    for (Fragment& f : fragments_) f.averaged = std::min(f.averaged, done.step - 1);  // a file may have set the training back
    step_ = done.step;
    samples_ += done.samples;
    if (!works()) return false;
    bool changed = false;
    for (Fragment& f : fragments_) {  // all ranks take it in the same step, whenever it arrives
      if (!f.under_way()) continue;
      if (f.request) (void)f.request->poll();
      if (step_ >= f.begun + options_.delay) changed = finish_exchange(f, own_share()) || changed;
    }
    if (step_ <= options_.first) return skip(changed);
    for (std::size_t i = 0; i < fragments_.size(); ++i)
      if (step_ <= options_.warm_up || (When::unit == Every::step && due(step_, i))) changed = begin(fragments_[i]) || changed;
    return arrive(changed);
  }
  /// With a delay nobody waits.
  bool all_met() const {
    if (When::unit != Every::step || options_.delay > 0 || step_ <= options_.first) return false;
    for (std::size_t i = 0; i < fragments_.size(); ++i)
      if (due(step_, i)) return true;
    return step_ <= options_.warm_up;
  }
  bool epoch_ends(std::int64_t epoch) {
    if (When::unit != Every::epoch || !works() || step_ <= options_.first) return false;
    bool changed = false;
    for (std::size_t i = 0; i < fragments_.size(); ++i)
      if (due(epoch + 1, i) && fragments_[i].averaged < step_) changed = begin(fragments_[i]) || changed;
    return arrive(changed);
  }
  bool finish() {
    bool changed = false;
    for (Fragment& f : fragments_)  // what was sent after the last step is the last average
      if (f.under_way()) changed = finish_exchange(f, options_.at_end && f.begun == step_ ? 0 : own_share()) || changed;
    if (!options_.at_end) return changed;
    for (Fragment& f : fragments_)
      if (works() && f.averaged < step_) changed = begin(f) || changed;
    changed = finish_exchanges() || changed;
    anchored_ = false;  // the parameters may be given other values before the next fit
    return changed;
  }

  /// In the steps before .first another policy sees to it, or nobody.
  SameWeights same_weights() const {
    return options_.at_end && step_ > options_.first ? SameWeights::after_fit : SameWeights::never;
  }
  /// What of the outer optimizer's state is not finite.
  std::string part_not_finite() { return outer_.not_finite(); }
  /// How often a part has become the mean so far.
  std::int64_t averages() const { return averages_; }

  /// What is under way is saved as a sum that has arrived, which no rank has taken.
  void before_save() {
    for (Fragment& f : fragments_)
      if (f.request) f.request->wait(), f.request.reset(), f.arrived = true;
  }
  /// The next fit begins at its first period. What is under way was begun by all ranks, and is waited for.
  void forget() {
    before_save();
    for (Fragment& f : fragments_) f.arrived = false, f.outer_steps = 0;
    outer_.forget();
    anchored_ = false;
    loaded_.reset();
  }
  /// What serialize() saves is of this policy.
  static std::string saved_as() { return "ModelAverage"; }
  static constexpr unsigned archive_version = 1;
  template <class Archive> void serialize(Archive& archive, unsigned version) {
    std::vector<std::vector<Scalar>> arrays;
    if (Archive::is_saving::value) arrays = outer_.saved();
    std::int64_t outer_steps = 0;
    for (const Fragment& f : fragments_) outer_steps += f.outer_steps;
    bool anchored = anchored_;
    (archive & anchored & outer_steps & arrays);
    Moment moment;
    if (Archive::is_saving::value) moment = now();
    if (version >= 1) (archive & moment);
    moment.anchored = anchored;
    if constexpr (Archive::is_loading::value) {
      if (!outer_.load(arrays)) archive.refuse("the file was saved from a training with another outer optimizer");
      take_outer_steps(moment.outer_steps, outer_steps);
      loaded_ = std::move(moment);
    }
  }

 private:
  using Fragment = detail::AveragedFragment<Request>;
  using Moment = detail::AverageMoment<Scalar>;
  Moment now() const {
    Moment m{.step = step_};
    for (const Fragment& f : fragments_) {
      const std::int64_t numbers[] = {f.begun, f.averaged, samples_ - f.samples, f.arrived ? 1 : 0};
      m.fragments.insert(m.fragments.end(), numbers, numbers + 4);
      m.outer_steps.push_back(f.outer_steps);
      if (!f.arrived) continue;
      m.sums.resize(m.sums.size() + f.width);
      Copy<Cpu, Device>::run(m.sums.data() + m.sums.size() - f.width, travels_.data() + f.place, f.width * sizeof(Scalar), {},
                             replica().where);
    }
    return m;
  }
  /// Those of each fragment, where the file has as many fragments; else an equal part of `all`.
  void take_outer_steps(const std::vector<std::int64_t>& each, std::int64_t all) {
    const std::int64_t part = all / static_cast<std::int64_t>(each.empty() ? fragments_.size() : each.size());
    for (std::size_t i = 0; i < fragments_.size(); ++i)
      fragments_[i].outer_steps = each.size() == fragments_.size() ? each[i] : part;
  }
  /// Goes on where a loaded file stood; takes no more than the anchor of one with other fragments.
  void take_loaded(const Moment& m) {
    anchored_ = m.anchored;
    std::size_t sums = 0;
    for (std::size_t i = 0; i < fragments_.size() && m.fragments.size() == 4 * fragments_.size(); ++i)
      sums += m.fragments[4 * i + 3] != 0 ? fragments_[i].width : 0;
    if (m.fragments.size() != 4 * fragments_.size() || m.sums.size() != sums) return;
    step_ = m.step;
    const Scalar* from = m.sums.data();
    for (std::size_t i = 0; i < fragments_.size(); ++i) {
      Fragment& f = fragments_[i];
      f.begun = m.fragments[4 * i], f.averaged = m.fragments[4 * i + 1];
      f.samples = samples_ - m.fragments[4 * i + 2];
      f.arrived = m.fragments[4 * i + 3] != 0;
      if (!f.arrived) continue;
      Copy<Device, Cpu>::run(travels_.data() + f.place, from, f.width * sizeof(Scalar), replica().where);
      from += f.width;
    }
  }

  /// A mean over one rank is the model itself; an outer optimizer has its own way with that.
  bool works() const { return several() || has_outer; }
  NamedValues common_values() const {
    NamedValues values = Base::common_values("ModelAverage");
    values.add("the period", When::length).add("its unit", When::unit == Every::step ? "steps" : "epochs");
    values.add(".fragments", fragments_.size()).add(".weighted", options_.weighted).add(".state", options_.state);
    values.add(".first", options_.first).add(".warm_up", options_.warm_up).add(".delay", options_.delay);
    values.add(".keep", options_.keep).add(".at_end", options_.at_end);
    if constexpr (has_outer) optim::describe(outer_.optimizer(), values);
    return values;
  }
  bool due(std::int64_t time, std::size_t fragment) const {
    return (time - When::length * static_cast<std::int64_t>(fragment) / static_cast<std::int64_t>(fragments_.size())) %
               When::length ==
           0;
  }
  bool skip(bool changed) {
    for (Fragment& f : fragments_) f.samples = samples_, f.averaged = step_;
    return changed;
  }
  /// A rank's own values keep that, where an average arrives late.
  double own_share() const { return options_.delay > 0 ? options_.keep : 0; }
  /// Without a delay what was begun comes to its end at once.
  bool arrive(bool changed) { return options_.delay > 0 ? changed : finish_exchanges() || changed; }
  bool finish_exchanges() {
    bool changed = false;
    for (Fragment& f : fragments_)
      if (f.under_way()) changed = finish_exchange(f, 0) || changed;
    return changed;
  }

  /// Equal parts at whole lines.
  void cut() {
    const long stored = replica().stored;
    const long lines = (stored + 15) / 16, parts = std::max<long>(1, std::min<long>(options_.fragments, lines));
    std::size_t place = 0;
    for (long i = 0; i < parts; ++i) {
      Fragment f;
      f.range = {std::min(stored, 16 * (lines * i / parts)), std::min(stored, 16 * (lines * (i + 1) / parts))};
      f.place = place;
      f.width = static_cast<std::size_t>(whole_line((f.range.end - f.range.begin) * arrays()) + 16);
      place += f.width;
      fragments_.push_back(std::move(f));
    }
    travels_ = Arena<Scalar, Device>(place, replica().where);
  }

  Scalar* values(const Fragment& f, int array) {
    const DeviceSpan<Scalar, Device>& span =
        array == 0 ? replica().parameters : replica().state[static_cast<std::size_t>(array - 1)];
    return span.data + f.range.begin;
  }
  int arrays() const { return 1 + (options_.state ? static_cast<int>(replica().state.size()) : 0); }

  /// Sends this rank's values times its weight, and the weight. True where something still under way changed the parameters.
  bool begin(Fragment& f) {
    if (When::unit == Every::epoch && f.under_way()) detail::refuse_long_delay(options_.delay, step_ - f.begun);
    const bool changed = f.under_way() && finish_exchange(f, own_share());
    const long n = f.range.end - f.range.begin;
    Scalar* to = travels_.data() + f.place;
    const Scalar weight = static_cast<Scalar>(options_.weighted ? samples_ - f.samples : 1);
    Memory<Device>::clear(to, f.width * sizeof(Scalar), replica().where);
    for (int k = 0; k < arrays(); ++k)
      detail::add_scaled<Scalar, Device>(to + k * n, values(f, k), n, static_cast<double>(weight));
    Copy<Device, Cpu>::run(to + f.width - 16, &weight, sizeof weight, replica().where, {});
    f.samples = samples_;
    f.begun = f.averaged = step_;
    f.request.emplace(comm().start_all_reduce(DeviceSpan<Scalar, Device>(to, f.width), Sum{}));
    return changed;
  }
  /// Takes what has arrived.
  bool finish_exchange(Fragment& f, double keep) {
    if (const auto exposed = this->waiting(); f.request) f.request->wait();
    f.request.reset();
    f.arrived = false;
    const long n = f.range.end - f.range.begin;
    Scalar* sum = travels_.data() + f.place;
    Scalar weight = 0;
    Copy<Cpu, Device>::run(&weight, sum + f.width - 16, sizeof weight, {}, replica().where);
    if (!(weight > 0)) return false;  // nobody has seen a sample
    for (int k = 1; k < arrays(); ++k) take(values(f, k), sum + k * n, n, 1 / static_cast<double>(weight), keep);
    ++f.outer_steps;
    replica().each_trained(f.range, [&](const plan::Range& r) {
      const Scalar* const from = sum + (r.begin - f.range.begin);
      Scalar* const to = replica().parameters.data + r.begin;
      if constexpr (has_outer) {
        outer_.step(r, from, 1 / static_cast<double>(weight), f.outer_steps);
        take(to, outer_.anchor() + r.begin, r.end - r.begin, 1, keep);
      } else {
        take(to, from, r.end - r.begin, 1 / static_cast<double>(weight), keep);
      }
    });
    if (keep == 0) f.averaged = step_;  // ranks are alike: another average now would be a step of the outer momentum alone
    ++averages_;
    return true;
  }
  /// values = keep * values + (1 - keep) * factor * mean
  void take(Scalar* to, const Scalar* mean, long n, double factor, double keep) {
    if (keep == 0) Memory<Device>::clear(to, static_cast<std::size_t>(n) * sizeof(Scalar), replica().where);
    else detail::add_scaled<Scalar, Device>(to, to, n, keep - 1);
    detail::add_scaled<Scalar, Device>(to, mean, n, (1 - keep) * factor);
  }

  ModelAverageOptions options_;
  [[no_unique_address]] detail::OuterMemory<Outer, Scalar, Device> outer_;
  Arena<Scalar, Device> travels_;
  std::vector<Fragment> fragments_;
  std::int64_t step_ = 0, samples_ = 0, averages_ = 0;
  bool anchored_ = false;
  std::optional<Moment> loaded_;  // until start()
};

}  // namespace skein::inline SKEIN_ABI::parallel
