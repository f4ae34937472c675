// SPDX-License-Identifier: Apache-2.0
// What a parallel policy is. A policy is what the user writes (a communicator and options: DataParallel{world}); bind() makes
// of it a policy state: the state that one training holds, with hooks around each step. Hooks are called by worker 0 of the rank;
// each is a no-op in PolicyState, the base that a policy's own state derives from. The policy state sees arenas and the program
// as values, so that it is compiled once for a communicator, not once for a network.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../comm/rank_names.hpp"
#include "../device/span.hpp"
#include "../plan/placement.hpp"
#include "capability.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// What a policy works on: the arenas of one model and its program. The gradients are the whole arena; what lies behind
/// `stored` are the sums of the batch (loss, weight, correct answers), which travel with the first bucket.
template <class Scalar_, class Device_> struct Replica {
  using Scalar = Scalar_;
  using Device = Device_;
  DeviceSpan<Scalar, Device> parameters{}, gradients{}, buffers{};
  std::vector<DeviceSpan<Scalar, Device>> state{};  ///< the optimizer's arrays, laid out as the parameters
  std::span<const plan::LayerNode> layers{};
  std::span<const plan::Entry> entries{};  ///< of the parameters: where the logical values are
  long stored = 0;                         ///< scalars of the parameter arena
  long first_trained = 0;                  ///< parameters before it are frozen: their gradients stay zero
  std::vector<plan::Range> trained{};      ///< what is not frozen, where something is; empty: all
  plan::Placement placement{};             ///< what of it each rank updates, and has the optimizer's state of
  Device where{};                          ///< which of the devices
  std::uint64_t fingerprint = 0;           ///< of everything of the model that the ranks must have in common
  std::string options{};                   ///< of the policy, that are types, in words: likewise

  /// visit(part) for the parts of `range` that are not frozen: what is frozen is the same on all ranks, and stays as it is.
  template <class Visit> void each_trained(plan::Range range, const Visit& visit) const {
    if (trained.empty()) return visit(range);
    for (const plan::Range& t : trained) {
      const plan::Range part{t.begin > range.begin ? t.begin : range.begin, t.end < range.end ? t.end : range.end};
      if (part.begin < part.end) visit(part);
    }
  }
};

/// How gradients of ranks are combined: the mean over all samples, or that times the number of ranks (the sum of the ranks'
/// means).
enum class Reduce { Mean, Sum };

/// When all ranks that have the same parameters have the same bits in them: what a fit may compare.
enum class SameWeights { never, after_fit, after_step };

/// What a step has been, as after_step hears it.
struct StepDone {
  std::int64_t step = 0;       ///< optimizer steps so far, this one included
  long samples = 0;            ///< of this rank
  double expected_weight = 1;  ///< gradients in the arena are sums over samples, divided by it
};

/// One update that a rank which serves makes on behalf of others: of the parameters in `range`, by the gradients that lie there
/// in the arena, times `scale`.
struct ShardUpdate {
  plan::Range range{};
  std::int64_t update = 1;  ///< its number, from 1: what Adam divides by
  std::int64_t step = 1;    ///< the worker's step, from 1: the place in the schedule of the rate
  double scale = 1;         ///< of the gradients: 1 / weight
  double rate = 1;          ///< of the optimizer's rate: less for gradients that are late
};
/// What a policy state that serves is given: the optimizer, without its type.
struct UpdateCallback {
  void* object = nullptr;
  void (*function)(void*, const ShardUpdate&) = nullptr;
  int arrays = 0;                        ///< of the optimizer's state
  void* (*state)(void*, int) = nullptr;  ///< array k: of what is owned
  int (*heard)(void*) = nullptr;         ///< a signal that this rank has got; 0: none
  void operator()(const ShardUpdate& u) const { function(object, u); }
  int signal() const { return heard ? heard(object) : 0; }
};

/// The hooks, all no-ops: a world of one. A policy's own state derives from it, has what it does differently, and declares what
/// of that goes beyond these hooks: concepts.hpp checks both.
struct PolicyState {
  /// What it can do beyond: see Capability.
  static constexpr Capabilities capabilities{};
  /// True: the sums that a step returns are this rank's alone, and the trainer adds up an epoch's over the ranks at its end.
  static constexpr bool local_sums = false;
  /// A device may keep the step's exchange and repeat it (a CUDA graph).
  static constexpr bool capturable = false;
  /// Not 0: each batch is cut into so many virtual shards, whose gradients this policy state adds up: set_partial_sums() gives it
  /// those of this rank's subtrees.
  static constexpr int virtual_shards = 0;
  /// Its ranks have clocks of their own, which each exchange puts forward.
  static constexpr bool simulated_time = false;
  int rank() const { return 0; }
  int ranks() const { return 1; }
  /// Ranks on this rank's machine, and whether they are threads of one process: they share its cores.
  int local_ranks() const { return 1; }
  bool threads_of_one_process() const { return false; }
  /// A rank that serves does not train: serve() returns when the others' fit has ended.
  bool serves() const { return false; }
  /// Where ranks serve: each update is by the gradients of all that train, so that the servers can know the norm of a step's.
  static constexpr bool serves_whole_steps = false;
  void serve(const UpdateCallback&) {}
  /// Where ranks serve: a signal that one of them has got, as the others hear of it; and before finish(), what ended the fit.
  int signal() const { return 0; }
  /// Updates that ranks which serve have made in this training, as their optimizers count them; 0: as many as steps.
  std::int64_t updates() const { return 0; }
  void set_signal(int) {}
  /// Before the first step of an epoch, counted from 0.
  void epoch_begins(std::int64_t) {}
  /// After its last step, before the validation; true where it changed the parameters.
  bool epoch_ends(std::int64_t) { return false; }
  /// Before the step of that number (from 1); true where it changed the parameters.
  bool before_step(std::int64_t) { return false; }
  /// Asked once a step, after before_step. False: no gradients are exchanged in this one; the two hooks below are not called, and
  /// the optimizer adds up the workers' gradients.
  bool synchronizes_gradients() const { return false; }
  /// Initial weights; every rank refuses to start, with one message, where they differ in what must agree.
  void start() {}
  /// Gradients [begin, end) of the arena are final on this rank; an empty range is a chance to make progress.
  void gradient_ready(long, long) {}
  /// Returns when the gradients and the sums behind them are those of the step.
  void finish_gradients() {}
  /// The factor beside 1 / weight that the gradients get.
  double gradient_factor() const { return 1; }
  /// After the optimizer's step; true where it changed the parameters.
  bool after_step(const StepDone&) { return false; }
  /// All ranks have waited for each other in the last step, though they do not in every one: what is to be asked of all is asked
  /// then. The same on all ranks.
  bool all_met() const { return false; }
  /// After the last step of a fit: what is under way comes to its end; true where it changed the parameters.
  bool finish() { return false; }
  /// Before a training is saved, on all ranks: rank 0 gets what it writes of the others.
  void before_save() {}
  /// A training was loaded whose file has no state of this policy: drops what is kept of the steps before.
  void forget() {}
  /// Before buffers are read for evaluation or saving: makes those of all ranks the same.
  void average_buffers() {}
  /// Sums over ranks (loss, metrics, requests to stop); blocking.
  void reduce(std::span<double>) {}
  void barrier() {}
  /// The numbers that each rank gives, as many on every rank, in the order of the ranks; the same for a text. All ranks take
  /// part, those that serve too. Blocking.
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) { return {own.begin(), own.end()}; }
  std::vector<std::string> texts_of_all(const std::string& own) { return {own}; }
  /// What messages call the ranks of these: over a part of a world by their numbers in the world.
  comm::RankNames rank_names() const { return {}; }
  /// Before weights are evaluated or kept: what the steps have made of the policy's own memory that is not finite, in a sentence
  /// without its end; "" where all is. A device is waited for.
  std::string part_not_finite() { return {}; }
  /// What the policy promises of the weights, and is therefore compared.
  SameWeights same_weights() const { return SameWeights::never; }
  /// Throws where the exchange has failed: after one has waited for a device, before one trusts what it made.
  void check() const {}
  /// A step that was captured, its exchange with it, has been launched once more.
  void replayed() {}
  /// Seconds that the step's worker 0 has waited for communication so far.
  double exposed_seconds() const { return 0; }
};

/// What a policy does not say itself. Policies derive from it, and have bind(replica) const, which makes a policy state.
struct PolicyBase {
  /// True: its TrainStep<Model, Loss, Optimizer> makes the steps, in place of train::TrainStep (a pipeline's).
  static constexpr bool brings_train_step = false;
  /// May the model be on that device; and the sentence where it may not.
  template <class Device> static constexpr bool fits = true;
  template <class Device> static consteval void assert_fits() {}
  /// Which rank updates which parameters, and has the optimizer's state of them: asked before there is a policy state.
  plan::Placement placement(const plan::ArenaTable& table) const { return plan::Placement::replicated(table.stored); }
  /// Memory for so many bytes of gradients from which the policy exchanges them faster, zeroed, with its owner; null: the model's
  /// own serves. Asked on all ranks before there is a policy state; 0 where the model has its gradients already.
  std::shared_ptr<void> gradient_memory(std::size_t) const { return nullptr; }
};

/// The type of policy that a Trainer with this one uses for its steps: equivalent, with fewer template arguments.
template <class Policy> struct StepPolicyOf { using type = Policy; };

/// One rank: the policy of a Trainer without a policy. Where several ranks were started, fit prints a line that they train apart.
struct SingleProcess : PolicyBase {
  template <class R> PolicyState bind(const R&) const { return {}; }
};

/// One rank among several, which trains a model of its own on purpose: fit prints no line about it.
struct Alone : SingleProcess {};

namespace detail {
/// Stands for a policy that was refused, in one sentence: nothing more is said of it then.
struct RefusedPolicy : SingleProcess {
  template <class... Given> explicit RefusedPolicy(const Given&...) {}
};
/// What a policy was given behind its communicator, and does not take.
template <class... Given> struct NotTaken {};
template <class...> inline constexpr bool takes_all = false;
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
