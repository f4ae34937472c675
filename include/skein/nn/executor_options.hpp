// SPDX-License-Identifier: Apache-2.0
// What an Executor is asked for, and the rule that chooses its order of execution from MemoryRequirements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "../core/denormals.hpp"
#include "../core/error.hpp"
#include "../device/device.hpp"
#include "../plan/virtual_shards.hpp"
#include "gradient_state.hpp"
#include "memory_requirements.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

enum class Execution { automatic, layer_wise, depth_first };

namespace nn {
template <class Executor> inline constexpr bool knows_its_capacity = false;
}

/// Options of an Executor; only the capacity must be given.
struct ExecutorOptions {
  long capacity = 0;  ///< the most samples of this rank in one call; must be given
  Execution execution = Execution::automatic;
  long block = 0;  ///< samples of a block in depth_first execution; 0: chosen by the sizes of the network
  /// workers of this rank; 0: `SKEIN_THREADS`, else all cores of the affinity mask, also where ranks share the machine (a Trainer
  /// divides them by those ranks)
  int threads = 0;
  Denormals denormals = Denormals::flush;  ///< what the workers do with numbers below the smallest normal one
  plan::VirtualShards
      shards{};          ///< this rank's, of a batch in virtual shards: each has gradients of its own, and is one worker's
  bool training = true;  ///< false: it evaluates and predicts alone, and there are no gradients
  /// Parameters before this offset of the arena are frozen (optim::BoundOptimizer::first_trained): backward ends at the first
  /// layer that is trained, and the gradients before it stay zero.
  long first_trained = 0;
};

/// Bytes that an executor and its model hold on their device, the optimizer's state apart.
struct MemoryPlan {
  std::size_t parameters = 0, gradients = 0;  ///< of all workers; large pages of what is frozen take none
  std::size_t buffers = 0, packed_weights = 0;
  std::size_t activations = 0;  ///< grows with the batch
  std::size_t workspace = 0;    ///< of the layers' own kernels
  std::size_t libraries = 0;    ///< of the device's libraries: one for all that a thread does there
};

/// One call of forward_backward.
struct ExecutorCall {
  /// factor of the gradient of the sum of losses; absent: 1 / expected_batch_weight(samples), so that it is that of the mean
  std::optional<double> scale{};
  /// the gradient is divided by so many samples, those of all calls and ranks that make a step (Executor::divide_by_weight: by
  /// their weights); 0: those of this call
  long of_samples = 0;
  double loss_scale = 1;  ///< of a model on 16-bit activations: gradients are so many times as large; divide them before the step
  bool accumulate = false;  ///< add to the gradients of the calls before; the sums that are returned are of all of them
  std::uint64_t key = 0;    ///< of this step's random numbers; 0: another in each call, of the model's seed and a count of calls
  long global_count = 0;    ///< samples of the whole batch: virtual shards are cut out of that
};

namespace nn {
/// The options of a call as the parts of a pass have them, with the factor itself.
struct PassCall {
  double scale = 1;  ///< of the gradient of the sum of losses
  double loss_scale = 1;
  bool accumulate = false;
  std::uint64_t key = 0;
  long global_count = 0;
};

/// The call with what it leaves open: the divisor of its mean, and the key.
constexpr PassCall resolve_call(const ExecutorCall& c, double weight, std::uint64_t key) {
  return {c.scale ? *c.scale : 1 / weight, c.loss_scale, c.accumulate, key, c.global_count};
}

/// The order of execution: depth-first pays where the parameters stay in the cache beside a block of activations, and
/// no sample needs another, nor what the batch before has left.
constexpr bool prefers_depth_first(const MemoryRequirements& s) {
  return !s.couples_batch && !s.carries_state && s.stored <= 16 * 1024;
}
/// Bytes of what a pass has of one sample, but its input and output.
constexpr long bytes_of_sample(const MemoryRequirements& s, long scalar_bytes, long activation_bytes) {
  return (s.kept_activations + s.again.activations + s.scratch + s.whole_gradients) * activation_bytes +
         (s.saved_for_backward + s.again.saved + s.backward_scratch) * scalar_bytes + s.saved_bytes + s.again.bytes + 1;
}
/// Samples a block, so that what backward needs of them fits into half of a second-level cache; a multiple of 8.
constexpr long depth_first_block(const MemoryRequirements& s, long scalar_bytes, long activation_bytes) {
  const long block = 256L * 1024 / bytes_of_sample(s, scalar_bytes, activation_bytes) / 8 * 8;
  return block < 8 ? 8 : block > 1024 ? 1024 : block;
}

/// Throws ArgumentError where no capacity is given, and for one whose bytes would not be counted by a long.
inline void check_capacity(long capacity, long bytes_a_sample) {
  if (capacity <= 0) throw ArgumentError("Executor: .capacity must be given: the most samples of this rank in one step");
  if (capacity > (1L << 56) / bytes_a_sample)
    throw ArgumentError(text(
        "Executor: a .capacity of {} samples is more than any memory has room for: give the most samples of this rank in one "
        "step",
        capacity));
}
/// Throws ArgumentError for a negative number of workers: of `who`'s option.
inline void check_threads(const char* who, int threads) {
  if (threads < 0) throw ArgumentError(text("{}: .threads is {}: give 1 or more; 0: the cores of this rank", who, threads));
}
/// Checks the options of the reserve() of a train step. Throws ArgumentError for those that are an Executor's alone.
inline void check_reserve(const ExecutorOptions& options) {
  check_threads("reserve", options.threads);
  if (!options.training)
    throw ArgumentError("reserve: a train step needs its gradients: leave .training out; to evaluate alone take a Predictor");
  if (options.shards)
    throw ArgumentError("reserve: the virtual shards of a train step are its policy's: leave .shards out and take Reproducible");
}
/// Throws ArgumentError for a batch of more samples than the capacity, or of others than the states of Stateful layers are of,
/// `before`; 0: they begin.
inline void check_count(long count, long capacity, long before) {
  if (count > capacity)
    throw ArgumentError(
        text("Executor: the batch has {} samples, and .capacity is {}: the most samples of one call", count, capacity));
  if (before > 0 && before != count)
    throw ArgumentError(
        text("Executor: the batch has {} samples, and the states of Stateful layers are of the {} of the batch "
             "before: each sample goes on where the one in its place has ended; executor.reset_states() begins "
             "with zeros",
             count, before));
}
namespace detail {
/// Throws ArgumentError for a number that is no value of the setting's enumeration.
inline void demand_value(const char* who, const char* setting, Execution value) {
  skein::detail::demand_value(who, setting, value, Execution::depth_first, "automatic, layer_wise or depth_first");
}
inline void demand_value(const char* who, const char* setting, Denormals value) {
  skein::detail::demand_value(who, setting, value, Denormals::keep, "flush or keep");
}
}  // namespace detail
/// Throws ArgumentError where gradients would be added to those that a step has used, and where a part of a step's would take the
/// place of another part.
inline void check_accumulation(const ExecutorCall& call, GradientState state, long samples) {
  if (!call.accumulate && state == GradientState::part && call.of_samples > samples)
    throw ArgumentError(
        text("forward_backward: this call has {} of the {} samples of a step (.of_samples), and would overwrite the gradients of "
             "the call before, which nothing has used: say .accumulate = true from the second call of each step on; or use them "
             "first, optimizer.step(model), or model.gradients()",
             samples, call.of_samples));
  if (call.accumulate && state == GradientState::used)
    throw ArgumentError(
        "forward_backward: .accumulate adds to gradients that have made a step already: leave it out in the first call of each "
        "step");
  if (call.accumulate && state == GradientState::lost)
    throw ArgumentError(
        "forward_backward: .accumulate adds to gradients that a call was making which threw: begin the step again, without it");
}
/// Throws ArgumentError for a factor of the gradient that is none: what a call of so many samples says of it, to a model that
/// scales its loss or does not.
inline void check_call(const ExecutorCall& call, long samples, bool scales_loss) {
  if (!(call.loss_scale > 0 && call.loss_scale <= 3.4e38) || (call.loss_scale != 1 && !scales_loss))
    throw ArgumentError(text("forward_backward: .loss_scale is {}: {}", call.loss_scale,
                             scales_loss
                                 ? "it is a positive finite factor"
                                 : "only models of 16-bit activations scale their loss; .scale is a factor of any gradient"));
  if (call.scale && !(*call.scale >= -1e300 && *call.scale <= 1e300))
    throw ArgumentError(
        text("forward_backward: .scale is {}: it is a finite factor of the gradient; without it the gradient is "
             "that of the mean",
             *call.scale));
  if (call.of_samples < 0 || (call.of_samples > 0 && call.scale))
    throw ArgumentError(call.of_samples < 0
                            ? text("forward_backward: .of_samples is {}: it is the number of samples of a whole "
                                   "step; 0: those of the call",
                                   call.of_samples)
                            : text("forward_backward: .scale = {} and .of_samples = {} both say the factor of the "
                                   "gradient: give one of them",
                                   *call.scale, call.of_samples));
  if (call.of_samples > 0 && call.of_samples < samples)
    throw ArgumentError(
        text("forward_backward: .of_samples is {}, and this call alone has {} samples: it is the number of samples of "
             "the whole step, over all its calls and ranks",
             call.of_samples, samples));
}

/// The options with what they leave open. Throws ArgumentError for those that a network of these sizes, or this device, cannot
/// have.
template <class Device>
ExecutorOptions resolve_options(ExecutorOptions o, const MemoryRequirements& sizes, long scalar_bytes, long activation_bytes) {
  check_capacity(o.capacity, bytes_of_sample(sizes, scalar_bytes, activation_bytes) + 16 * sizes.output.count());
  check_threads("Executor", o.threads);
  detail::demand_value("Executor", ".execution", o.execution);
  detail::demand_value("Executor", ".denormals", o.denormals);
  if (o.first_trained < 0 || o.first_trained > sizes.stored)
    throw ArgumentError(
        text("Executor: .first_trained is {}: it is an offset in the model's {} stored parameters, padding included",
             o.first_trained, sizes.stored));
  if (!on_host<Device> && o.execution == Execution::depth_first)
    throw ArgumentError("Executor: depth-first blocks keep samples in the host's cache; on " + std::string(Device::name) +
                        " a network runs layer by layer: leave .execution as it is");
  if (sizes.carries_state && (o.shards || o.execution == Execution::depth_first))
    throw ArgumentError(
        "Executor: a network with Stateful layers needs the whole batch in each layer, since every sample has its state from one "
        "batch to the next: use Execution::layer_wise, without .shards");
  if (o.shards) {  // each by itself, as blocks: of the size that fits the cache, or whole
    if (!on_host<Device>)
      throw ArgumentError("Executor: virtual shards are for the host: on " + std::string(Device::name) + " leave .shards empty");
    if (sizes.couples_batch)
      throw ArgumentError(
          "Executor: a network with batch normalisation has statistics of the whole batch, which virtual shards do not share");
    const long shard = (o.capacity + o.shards.count() - 1) / o.shards.count();
    if (o.execution == Execution::layer_wise || (o.execution == Execution::automatic && !prefers_depth_first(sizes)))
      o.block = shard;
    else if (o.block <= 0) o.block = depth_first_block(sizes, scalar_bytes, activation_bytes);
    if (o.block > shard) o.block = shard;
    o.execution = Execution::depth_first;
    return o;
  }
  if (!on_host<Device>) o.execution = Execution::layer_wise;
  if (o.execution == Execution::automatic)
    o.execution = prefers_depth_first(sizes) ? Execution::depth_first : Execution::layer_wise;
  if (o.execution == Execution::depth_first && sizes.couples_batch)
    throw ArgumentError(
        "Executor: a network with batch normalisation needs the whole batch in each layer: use Execution::layer_wise");
  if (o.block <= 0) o.block = depth_first_block(sizes, scalar_bytes, activation_bytes);
  if (o.block > o.capacity) o.block = o.capacity;
  return o;
}
}  // namespace nn

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
