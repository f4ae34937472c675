// SPDX-License-Identifier: Apache-2.0
// Executor: one model's forward, loss and backward over a batch, by the workers of a rank. A step allocates nothing, but within
// oneDNN for a float Linear of two million weights. Two orders: layer by layer over the whole batch (gradients become ready
// early, from the back), or depth-first by blocks of samples (small networks stay in the host's cache; gradients are ready at the
// end). A device of its own runs layer by layer, given its work by one host thread that waits for nothing; only sums() does.
// exec/ has the parts: the memory, a slice's pass, the orders, virtual shards, and what is ready.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/workers.hpp"
#include "batch_on_device.hpp"
#include "check_batch.hpp"
#include "exec/gradient_divisor.hpp"
#include "exec/layer_wise.hpp"
#include "exec/ready_gradients.hpp"
#include "exec/virtual_shards.hpp"
#include "refused_executor.hpp"

namespace skein::inline SKEIN_ABI {

namespace nn {
template <class Model> inline constexpr bool outlives_its_executor = false;
}  // namespace nn

/// Computes forward, loss and backward of a model for a batch. The model must outlive the executor. Run: what a worker's pass is
/// made of, where it does more (nn::KroneckerRun).
template <class Model, class Loss,
          class Run = nn::Run<typename Model::Scalar, typename Model::device, typename Model::Activation>>
class Executor {
  static_assert((nn::assert_loss<Loss>(), nn::assert_outputs<typename Model::network, Loss>(), true));
  using Memory = nn::ExecutorMemory<Model, Run>;
  using State = typename Memory::State;

 public:
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using Input = typename Model::input;
  using View = BatchView<Scalar, Device>;
  static constexpr nn::MemoryRequirements sizes = Memory::sizes;
  static constexpr long input_pitch = Memory::input_pitch, output_pitch = Memory::output_pitch;
  static constexpr long width = sizes.output.count();

  /// Allocates all memory. Throws ArgumentError for options that do not fit the network.
  Executor(Model& model, Loss loss, ExecutorOptions options)
      : options_(nn::resolve_options<Device>(options, sizes, sizeof(Scalar), sizeof(Activation))), step_memory_(model.where()),
        workers_(on_host<Device> ? options_.threads : 1, options_.denormals), memory_(model, options_, workers_.size()),
        pass_(memory_, step_memory_, std::move(loss)), ready_(memory_, step_memory_),
        shards_(options_.shards, shard_gradients(), sizes.stored, memory_.gradient_arrays().unwritten()),
        batch_on_device_(model.where(), nn::batch_rows<Model, Loss>()) {}
  /// Without options: refused.
  Executor(Model& model, Loss loss) : Executor(model, std::move(loss), {}) {
    static_assert(nn::knows_its_capacity<Executor>,
                  "an executor needs the most samples of a batch: sk::Executor executor{model, loss, {.capacity = 64}}");
  }
  /// A model that ends with the statement is refused.
  Executor(Model&& model, Loss loss, ExecutorOptions options) : Executor(model, std::move(loss), options) {
    static_assert(nn::outlives_its_executor<Model>, "the model must outlive its executor: give it a name, sk::Model<...> model");
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  Model& model() const { return memory_.model(); }
  const Loss& loss() const { return pass_.loss(); }
  Workers& workers() { return workers_; }
  long capacity() const { return options_.capacity; }
  /// What worker w's pass is made of.
  Run& run_of(int w) { return memory_.state(w).run; }
  bool depth_first() const { return memory_.depth_first(); }
  /// The copies of the weights that its kernels read: of all executors of this model on the host.
  const void* packed_weights() const { return memory_.copies(); }
  /// The outputs of the last forward of this rank: (batch, output_pitch).
  const Scalar* outputs() const { return memory_.outputs(); }
  /// The gradients of worker w: worker 0's is the model's own. With virtual shards: of this rank's shard w.
  Scalar* gradients(int w) { return memory_.gradients(w); }
  /// Ranges of the parameter arena whose gradient is the sum over workers; elsewhere worker 0's alone is whole.
  const std::vector<plan::Range>& summed_ranges() const { return memory_.summed_ranges(); }

  /// Bytes of the arenas that grow with the batch: activations, their gradients, what layers keep of them.
  std::size_t activation_bytes() const { return memory_.activation_bytes(); }
  /// All that the model and this executor hold. After prepare(): with what the layers have reserved.
  MemoryPlan memory_plan() const {
    MemoryPlan m = memory_.plan();
    m.libraries = static_cast<std::size_t>(step_memory_.workspace_bytes());
    return m;
  }
  /// Lines on what the device's libraries chose for the batches that were prepared, and what they did not do; empty on the host.
  std::string choices_text() const { return step_memory_.choices_text(); }

  // ---- one call for hand-written loops ---------------------------------------------------------------------------------

  /// Forward, loss, backward. The gradients of the rank are in model().gradients() afterwards: those of the mean loss over this
  /// batch, by the weights of its samples where the loss has such. Several calls, or ranks, that make one step say `.of_samples`,
  /// all its samples: their gradients add up to that of the sum of losses by that number, and divide_by_weight makes it the mean
  /// where samples have weights. `.scale` is a factor of your own, of the gradient of the sum of losses. With `.accumulate` the
  /// gradients are added to those before, and the sums that are returned are of all calls since the first one without it: add up
  /// those of the last call of each step alone. The batch (device/batch_view.hpp) is in memory of the host or of the model's
  /// device. Waits for a device (train::TrainStep does not). Throws where samples or targets are not what the model and the loss
  /// take, and where `.accumulate` would add to gradients that a step has used or, without `.of_samples`, of another scale.
  template <class Given> nn::LossSums forward_backward(const Given& given, const ExecutorCall& call = {}) {
    if (!options_.training)
      throw ArgumentError("Executor: one that was made with .training = false has no gradients: it evaluates and predicts");
    if (options_.shards) throw ArgumentError("Executor: the gradients of virtual shards are summed by train::TrainStep");
    [[maybe_unused]] const auto here = step_memory_.enter();
    const auto& seen = batch_view<Scalar, Device>(given);
    nn::check_call(call, seen.count, Model::scales_loss);
    check(given, seen, true);
    nn::check_accumulation(call, model().gradient_state(), seen.count);
    const View& batch = batch_on_device_(seen);
    const double weight = expected_batch_weight(call.of_samples > 0 ? call.of_samples : batch.count);
    const nn::PassCall pass =
        nn::resolve_call(call, weight, call.key != 0 ? call.key : random_key(model().seed().value, ++calls_));
    model().set_gradient_state(nn::GradientState::lost);  // until all are made
    begin(batch, pass);
    const bool summed = ready_.summed();
    run([&](Worker& w) {
      if (call.accumulate && summed && w.index > 0) memory_.gradient_arrays().clear(w.index);
      forward_backward(w, batch, pass);
      w.barrier();
      ready_.sum_workers(w);
    });
    finish();
    ready_.set_summed();
    const nn::LossSums made = sums();
    if (divisor_.add_call(call, batch.count, weight, made.weight)) ready_.divide_by(made.weight, weight);
    const bool part = !call.accumulate && call.of_samples > batch.count && std::isfinite(made.loss);  // one that is not: left out
    model().set_gradient_state(part ? nn::GradientState::part : nn::GradientState::made);
    return made;
  }
  /// After the last call of a step, before the ranks add up their gradients: makes them this rank's part of the gradient of the
  /// mean by weights. `weight`: the sum of LossSums::weight over all calls and ranks of the step. Where it is the number of
  /// samples nothing changes. Throws ArgumentError where the calls gave different `.of_samples`, or a `.scale`.
  void divide_by_weight(double weight) {
    [[maybe_unused]] const auto here = step_memory_.enter();
    ready_.divide_by(weight, divisor_.replace(weight, model().gradient_state()));
  }
  /// Forward and loss without backward, as in evaluation (no dropout). outputs() has the outputs; a batch without targets gives
  /// them alone, and sums of nothing.
  template <class Given> nn::LossSums evaluate(const Given& given) {
    [[maybe_unused]] const auto here = step_memory_.enter();
    const auto& seen = batch_view<Scalar, Device>(given);
    check(given, seen, false);
    const View& batch = batch_on_device_(seen);
    begin(batch, {}, true);
    run([&](Worker& w) { evaluate(w, batch); });
    return sums();
  }

  /// Stateful layers begin the next call with zeros, and a batch of any size. Without it each call, of training or evaluation,
  /// goes on where the one before has ended. A call that throws in its pass resets the states too.
  void reset_states() {
    for (int w = 0; w < workers_.size(); ++w) memory_.state(w).continues = 0;
  }

  /// What an unweighted loss divides by: labels, or samples times outputs.
  static constexpr double expected_batch_weight(long samples) { return nn::expected_weight<Loss>(sizes.output, samples); }

  /// What the device reads of a step, beside the batch. The calling thread has entered step_memory().
  nn::StepMemory<Device>& step_memory() { return step_memory_; }
  /// Before the parts, also before those that a device replays: the numbers of the step go to the device, and its sums are those
  /// of training from now on, or of an evaluation. Does not wait.
  void begin(const View& batch, const nn::PassCall& call, bool evaluation = false) {
    step_memory_.turn_to(evaluation);
    if constexpr (!on_host<Device>) step_memory_.begin(nn::step_values(call, batch.first));
  }

  /// One parallel region, in which every worker calls the parts. After an exception of any worker the next region begins afresh.
  template <class Function> void run(Function&& f) {
    memory_.begin_pass();
    try {
      workers_.run(f);
    } catch (...) {
      ready_.forget(), divisor_.forget();
      memory_.abandon_copies();
      if constexpr (sizes.carries_state) reset_states();
      throw;
    }
  }

  // ---- the parts, called by every worker inside one parallel region ----------------------------------------------------

  SKEIN_NOINLINE void forward_backward(const Worker& w, const View& batch, const nn::PassCall& call,
                                       const nn::ExecutorSinks& sinks = {}) {
    State& s = memory_.state(w.index);
    s.turn_to(false);
    memory_.forget_packed(s, call.accumulate);
    memory_.refresh(w, s);
    s.run.context.key = call.key;
    s.run.context.worker = w;
    s.run.context.phase = nn::Phase::training;
    carry_state(s, batch.count);
    if constexpr (!on_host<Device>) s.run.context.values = step_memory_.values();
    if (!call.accumulate) {
      s.sums = {};
      step_memory_.clear_sums();
      if (!options_.shards) memory_.clear_gradients(s);
    }
    if (w.index == 0) ready_.begin(sinks);
    ready_.listen(s, sinks);
    if (options_.shards) nn::run_shards(pass_, memory_, options_.shards, w, batch, call);
    else if (depth_first()) nn::run_depth_first(pass_, s, memory_.capacity(), slice(w, batch.count), batch, call);
    else nn::run_layer_wise(pass_, s, w, batch, call);
    ready_.worker_finished(w);
  }

  /// With virtual shards, after every worker's forward_backward and a barrier: see nn::ShardSums.
  void sum_shards(const Worker& w) { shards_.sum(w); }
  nn::LossSums shard_sums() { return shards_.batch_sums(); }
  std::vector<Scalar*> subtree_sums() { return shards_.subtree_sums(); }

  /// Worker 0, after the others have arrived, before a barrier: reports what has not been reported to the sink.
  void finish() { ready_.finish(); }

  /// The sums are those of this batch, or with `accumulate` those of the evaluations before too. Those of an accumulation that
  /// is under way stay.
  void evaluate(const Worker& w, const View& batch, bool accumulate = false) {
    State& s = memory_.state(w.index);
    s.turn_to(true);
    memory_.refresh(w, s);
    if (!accumulate) {
      s.sums = {};
      step_memory_.clear_sums();
    }
    if constexpr (!on_host<Device>) s.run.context.values = step_memory_.values();
    s.run.context.worker = w;
    s.run.context.phase = nn::Phase::evaluation;
    carry_state(s, batch.count);
    ready_.listen(s, {});
    if (depth_first()) nn::evaluate_depth_first(pass_, s, memory_.capacity(), slice(w, batch.count), batch);
    else nn::evaluate_layer_wise(pass_, s, w, batch);
  }

  /// Sums of loss, weight and correct answers of this rank's last call (or accumulated calls). Waits for a device that has them.
  nn::LossSums sums() const { return ready_.sums(); }

  /// Whatever layers want to have before step 1 for a batch of this size (primitives); call once for each size to come.
  void prepare(long batch) {
    [[maybe_unused]] const auto here = step_memory_.enter();
    nn::prepare_loss<Device>();
    workers_.run([&](Worker& w) {
      State& s = memory_.state(w.index);
      s.run.context.worker = w;
      const plan::Range mine = slice(w, batch);
      s.run.batch = mine.end - mine.begin;
      if (!depth_first()) return Memory::Root::prepare(s.run, nn::ArenaOffsets{});
      if (!options_.shards) return nn::prepare_depth_first<Memory>(s, memory_.capacity(), s.run.batch);
      for (long n : {batch / options_.shards.count(), batch / options_.shards.count() + 1})
        nn::prepare_depth_first<Memory>(s, memory_.capacity(), n);
    });
  }

 private:
  void check(const auto& given, const auto& batch, bool training) const {
    nn::check_given<Model>(loss(), given, batch, training);
    nn::check_count(batch.count, capacity(), sizes.carries_state ? memory_.state(0).continues : 0);
  }
  /// What the layers' states are those of.
  static void carry_state(State& s, long samples) {
    if constexpr (sizes.carries_state) {
      s.run.context.continues = s.continues > 0;
      s.continues = samples;
    }
  }
  static plan::Range slice(const Worker& w, long n) {
    const auto [lo, hi] = w.slice(n);
    return {lo, hi};
  }
  std::vector<Scalar*> shard_gradients() const {
    std::vector<Scalar*> arrays;
    for (int i = 0; options_.training && i < options_.shards.count(); ++i) arrays.push_back(memory_.gradients(i));
    return arrays;
  }

  ExecutorOptions options_;
  nn::StepMemory<Device> step_memory_;
  Workers workers_;
  Memory memory_;
  nn::SlicePass<Model, Loss, Memory> pass_;
  nn::ReadyGradients<Memory> ready_;
  nn::ShardSums<Scalar> shards_;
  nn::BatchOnDevice<Scalar, Device> batch_on_device_;
  nn::GradientDivisor divisor_;
  std::uint64_t calls_ = 0;  // of hand-written loops that gave no key
};

/// What is no model has no type of a Run: it is refused.
template <class Any, class Loss>
requires(!nn::takes_part<std::remove_reference_t<Any>>) Executor(Any&&, Loss, ExecutorOptions)
->Executor<std::remove_reference_t<Any>, Loss, void>;

}  // namespace skein::inline SKEIN_ABI
