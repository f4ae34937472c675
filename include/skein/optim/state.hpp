// SPDX-License-Identifier: Apache-2.0
// An optimizer bound to one model: its state arrays, laid out as the parameter arena, and its groups as ranges of the table.
// One pass of update() over any part of the arena; workers take disjoint parts.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../device/copy.hpp"
#include "../nn/gradient_state.hpp"
#include "../plan/program.hpp"
#include "clip.hpp"
#include "optimizer.hpp"
#include "state_updates.hpp"
#include "step_checks.hpp"
#include "transform/transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// The names of the rows of a table of parameters.
std::vector<std::string> names_of(std::span<const plan::PathPart> paths, std::span<const plan::Entry> entries);
/// The rules as ranges of such a table.
std::vector<ParameterGroupRange> resolve(const Groups& groups, std::span<const plan::Entry> entries,
                                         const std::vector<std::string>& names);

/// Throws ArgumentError where the rules freeze all parameters of such a program, or multiply their rates by 0.
template <class Program> void check_trains(const Groups& groups, const Program& program) {
  if (groups.empty()) return;
  bool frozen = true;
  for (const ParameterGroupRange& range :
       resolve(groups, program.parameters(), names_of(program.parts(), program.parameters()))) {
    if (!range.frozen && range.lr_factor != 0) return;
    frozen = frozen && range.frozen;
  }
  throw ArgumentError(std::string("the rules of .groups ") +
                      (frozen ? "freeze every parameter" : "multiply the rate of every parameter that they do not freeze by 0") +
                      ", so that nothing is left to train: frozen(\"0.*\") freezes those of layer 0, and trainable(\"7.*\") "
                      "behind it takes a rule back");
}

/// What one step hands to the pass.
template <class Scalar> struct StepCall {
  std::int64_t step = 1;                     ///< from 1
  double lr = 0;                             ///< scheduled rate
  double gradient_scale = 1;                 ///< the divisor and the clipping
  const ops::StepScale* scale = nullptr;     ///< one more factor, in the device's memory; null: none
  const Scalar* const* gradients = nullptr;  ///< one array a worker
  int gradient_count = 1;
};

/// A model: its network's program is a constant of its type.
template <class M> concept HasProgram = requires { M::program; };

/// Options of BoundOptimizer::step.
struct UpdateOptions {
  std::optional<double> lr{};  ///< of this step, also 0; absent: the optimizer's own
  double clip_norm = 0;        ///< gradients of a larger global norm are scaled down to it; 0: no clipping. On the host
};

namespace detail {
/// The hash of the layout of a model's type: a constant.
template <class Model> constexpr std::uint64_t layout_of() {
  constexpr std::uint64_t hash = plan::layout_hash(Model::program);
  return hash;
}
template <class Model> constexpr long stored_of() { return Model::program.stored_parameters; }
/// Throws ArgumentError: the optimizer's state is not that of this model's parameters.
[[noreturn]] void refuse_model(long bound, long given, bool whole);
/// Throws ArgumentError: the optimizer's state is that of the weights of another model, of the same layout.
[[noreturn]] void refuse_other_weights();
/// Throws ArgumentError: a step would use gradients that a step has used already, or that nobody has made.
[[noreturn]] void refuse_gradients(nn::GradientState state);
/// Throws ArgumentError for values that are no rate, or no norm to clip by.
void refuse_rate(double lr);
inline void check(const UpdateOptions& o) {
  if (o.lr && !(*o.lr >= 0 && *o.lr <= 3.4e38)) [[unlikely]]
    refuse_rate(*o.lr);
  check_clip_norm("step", o.clip_norm);
}
}  // namespace detail

/// An optimizer with its state for the parameters of one program, or for a part of them.
template <Optimizer O, class Scalar, class Device> class BoundOptimizer {
 public:
  /// `program`: the model's; throws ArgumentError for hyper-parameters or groups that make no sense.
  template <class Program>
  requires(!HasProgram<Program>) BoundOptimizer(const O& optimizer, const Program& program, Device where = {})
      : BoundOptimizer(optimizer, program, where, plan::Range{0, program.stored_parameters}) {}
  /// With state of a part of the parameters alone: nothing else of them is ever updated. Nor, on the host, is there state of what
  /// first_trained() leaves out, but where the arrays are wanted whole.
  template <class Program>
  BoundOptimizer(const O& optimizer, const Program& program, Device where, plan::Range owned, bool whole_arrays = false)
      : optimizer_(optimizer), stored_(program.stored_parameters), layout_(plan::layout_hash(program)), owned_(owned),
        kept_(owned), arrays_(optimizer.state_arrays()) {
    check(optimizer_);
    std::vector<std::string> names = names_of(program.parts(), program.parameters());
    ranges_ = resolve(groups_of(optimizer_), program.parameters(), names);
    if constexpr (needs_tensors<O>)
      entries_.assign(program.parameters().begin(), program.parameters().end()), names_ = std::move(names);
    if (std::same_as<Device, Cpu> && !whole_arrays) kept_.begin = std::clamp(first_trained(), owned.begin, owned.end);
    state_ = Arena<Scalar, Device>(static_cast<std::size_t>(pitch() * arrays_), where);
    for (int k = 0; k < arrays_; ++k) pointers_.push_back(state_.data() + k * pitch() - kept_.begin / 16 * 16);
    make_factors(where);
  }

  /// For a model: `sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 0.001f}, model};`.
  template <HasProgram Model> BoundOptimizer(const O& optimizer, const Model& model)
      : BoundOptimizer(optimizer, Model::program, model.where()) {
    weights_ = &model.weights();
    check_trains(groups_of(optimizer_), Model::program);
  }

  /// One step of a loop by hand: updates the model's parameters by its gradients, which executor.forward_backward() has made
  /// and the ranks have summed. It counts the steps itself. All of the parameters; on one thread. Throws ArgumentError for
  /// another model than the one it was made with (of another layout, where it was made with a program), for options that make no
  /// sense, and where there are no new gradients since the last step.
  template <class Model> void step(Model& model, const UpdateOptions& options = {}) {
    static_assert(!has_stages<O>,
                  "a chain with transforms of whole tensors is more than one pass: a loop by hand makes its steps with "
                  "train::TrainStep");
    if (!whole() || detail::layout_of<Model>() != layout_) detail::refuse_model(stored_, detail::stored_of<Model>(), whole());
    if (weights_ && weights_ != &model.weights()) [[unlikely]]
      detail::refuse_other_weights();
    [[maybe_unused]] const typename Memory<Device>::Current there(model.where());
    detail::check(options);
    if (const nn::GradientState state = model.gradient_state();
        state != nn::GradientState::made && state != nn::GradientState::part) [[unlikely]]
      detail::refuse_gradients(state);
    const Scalar* gradients[] = {model.gradient_arena().data};
    StepCall<Scalar> call{
        .step = steps_ + 1, .lr = options.lr.value_or(static_cast<double>(optimizer_.lr)), .gradients = gradients};
    const ClipNorm clip{static_cast<float>(clip_norm_of(optimizer_, options.clip_norm))};
    if (clip.active()) call.gradient_scale = clip(gradient_norm(call));
    const auto weights = model.modify();
    ++steps_;  // one that was refused is none
    update(weights.data(), call, 0, stored_);
    model.set_gradient_state(nn::GradientState::used);
  }

  /// The steps that step() has made: Adam corrects its moments by their number. A program that keeps array(k) keeps it too, and
  /// gives it back with them.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// Updates what [begin, end) of the arena holds: within owned().
  void update(Scalar* parameters, const StepCall<Scalar>& call, long begin, long end) const {
    UpdateCall<Scalar, Device> u = complete(parameters, call, begin, end);
    if (!takes_ranges<O, Device>() || begun_apart_) u.ranges = nullptr;
    optim::update(optimizer_, std::span<const ParameterGroupRange>(ranges_.data(), ranges_.size()), u);
  }
  /// Sum of the squares of what update() would take as gradients, over [begin, end).
  double sum_of_squares(const StepCall<Scalar>& call, long begin, long end) const requires std::same_as<Device, Cpu> {
    return optim::sum_of_squares(std::span<const ParameterGroupRange>(ranges_.data(), ranges_.size()),
                                 complete(nullptr, call, begin, end));
  }
  /// Writes that sum to `into`, which is in the device's memory, without waiting; call.scale has no part in it.
  void sum_of_squares(const StepCall<Scalar>& call, long begin, long end, double* into) const {
    if constexpr (std::same_as<Device, Cpu>) *into = sum_of_squares(call, begin, end);
    else ops::sum_of_squares<Device>(arguments_of<ops::UpdateArguments<Scalar>>(complete(nullptr, call, begin, end)), into);
  }
  /// The call of a pass over [begin, end): with ranges and state.
  UpdateCall<Scalar, Device> complete(Scalar* parameters, const StepCall<Scalar>& call, long begin, long end) const {
    UpdateCall<Scalar, Device> u;
    u.parameters = parameters;
    u.gradients = call.gradients;
    u.gradient_count = call.gradient_count;
    u.gradient_scale = static_cast<Scalar>(call.gradient_scale);
    u.scale = call.scale;
    u.ranges = factors_.data();
    u.range_count = static_cast<int>(factors_.size());
    u.state = pointers_.data();
    u.begin = begin;
    u.end = end;
    u.step = call.step;
    u.lr = static_cast<float>(call.lr);
    u.weight_decay = weight_decay_of(optimizer_);
    return u;
  }

  const O& optimizer() const { return optimizer_; }
  int arrays() const { return arrays_; }
  /// The part of the arena that update() takes; and is that all of it.
  plan::Range owned() const { return owned_; }
  bool whole() const { return owned_.begin == 0 && owned_.end == stored_; }
  /// What of that has state: what begins with frozen parameters has none there.
  plan::Range kept() const { return kept_; }
  /// State array k, in the layout of the parameters: of kept().
  DeviceSpan<Scalar, Device> array(int k) {
    return {pointers_[static_cast<std::size_t>(k)] + kept_.begin, static_cast<std::size_t>(kept_.end - kept_.begin)};
  }
  /// Bytes of all arrays.
  std::size_t state_bytes() const { return state_.size() * sizeof(Scalar); }
  std::span<const ParameterGroupRange> ranges() const { return {ranges_.data(), ranges_.size()}; }
  /// Parameters before this offset of the arena are frozen, from the first on: an Executor that knows it makes no gradients of
  /// them.
  long first_trained() const {
    long offset = 0;
    for (const ParameterGroupRange& r : ranges_)
      if (r.frozen && r.begin <= offset) offset = r.end;
    return offset;
  }
  /// The updates that the state of each of the model's rows has had, after so many steps of the training, where it had these
  /// before.
  StateUpdates updates_after(const StateUpdates& before, std::int64_t steps, std::span<const plan::Entry> rows) const {
    return optim::updates_after(before, steps, rows, ranges(), kept_.begin > owned_.begin ? kept_.begin : 0);
  }
  /// From now on each row's step is that of its own state. True: what update() launches has changed.
  bool begin_at(const StateUpdates& updates, std::span<const plan::Entry> rows) {
    const bool before = begun_apart_;
    ranges_ = begun(ranges_, rows, updates);
    begun_apart_ = std::any_of(ranges_.begin(), ranges_.end(), [](const ParameterGroupRange& r) { return r.since != 0; });
    return before || begun_apart_;
  }
  /// Rows of the parameter table and their names, where the optimizer has a transform that needs them.
  std::span<const plan::Entry> entries() const { return {entries_.data(), entries_.size()}; }
  std::string_view name(std::size_t entry) const { return names_[entry]; }

 private:
  /// State arrays begin on whole lines, and an element of the parameters stands in its line where it does there.
  long pitch() const { return whole_line(kept_.end) - kept_.begin / 16 * 16; }
  /// The ranges where the kernels are, unless one rate and decay serve all.
  void make_factors(Device where) {
    if constexpr (ops::OptimizerKernels<Device>::takes_ranges) {
      if (ranges_.size() == 1 && !ranges_[0].frozen) return;
      std::vector<ops::RangeFactors> table;
      for (const ParameterGroupRange& r : ranges_) table.push_back({r.begin, r.end, r.lr_factor, r.decay_factor, r.frozen});
      factors_ = Arena<ops::RangeFactors, Device>(table.size(), where);
      Copy<Device, Cpu>::run(factors_.data(), table.data(), table.size() * sizeof(ops::RangeFactors), where);
    }
  }
  double gradient_norm(const StepCall<Scalar>& call) const {
    if constexpr (std::same_as<Device, Cpu>) return std::sqrt(sum_of_squares(call, 0, stored_));
    else throw ArgumentError("step: .clip_norm is for the host; on a device train::TrainStep clips without waiting for the norm");
  }

  O optimizer_;
  std::int64_t steps_ = 0;  // of step()
  long stored_;
  std::uint64_t layout_;
  const void* weights_ = nullptr;  // of the model that it was made with: they stay where they are when the model moves
  plan::Range owned_, kept_;
  int arrays_;
  Arena<Scalar, Device> state_;
  std::vector<Scalar*> pointers_;
  std::vector<ParameterGroupRange> ranges_;
  bool begun_apart_ = false;                  // some of them at other steps than others
  Arena<ops::RangeFactors, Device> factors_;  // of devices whose passes take ranges
  std::vector<plan::Entry> entries_;
  std::vector<std::string> names_;
};
template <Optimizer O, HasProgram Model> BoundOptimizer(const O&, const Model&)
    -> BoundOptimizer<O, typename Model::Scalar, typename Model::device>;

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "state.ipp"
#endif
