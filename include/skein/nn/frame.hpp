// SPDX-License-Identifier: Apache-2.0
// What a layer gets in a call: the Frame, which names its memory, and the Context of the worker that runs it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../core/workers.hpp"
#include "../ops/step_values.hpp"

namespace skein::inline SKEIN_ABI::nn {

enum class Phase { training, evaluation };

/// How float products may be made: as they are, or by matrix units that round their operands to 10 bits of mantissa (TF32).
enum class FloatMath { full, tf32 };

/// What a layer may ask about the executor that runs it. One per worker.
template <class Scalar, class Device> struct Context {
  Phase phase = Phase::training;
  bool accumulate = true;                   ///< false: the gradients hold nothing yet, an overwriting layer may store
  bool split = false;                       ///< see split_gradients()
  bool again = false;                       ///< forward runs once more, for backward: running statistics stay
  bool continues = false;                   ///< `carries_state`: the samples go on where those of the call before have ended
  long first = 0;                           ///< of this worker's samples, in the rank's batch
  long total = 0;                           ///< samples in the rank's batch
  long global_total = 0;                    ///< of all ranks, where they share their statistics
  std::uint64_t key = 0;                    ///< of this step's random numbers
  std::uint64_t global_first = 0;           ///< first sample of this slice, in the global batch
  const ops::StepValues* values = nullptr;  ///< not null: key and global_first are there, in the device's memory
  FloatMath math = FloatMath::full;         ///< of the precision's compute type; back ends without TF32 ignore it
  Worker worker{};

  // Filled by the executor; layers call the functions below.
  double* exchange = nullptr;  // (workers, exchange_size)
  long exchange_size = 0;
  void (*statistics_hook)(void*, double*, long) = nullptr;
  void (*ready_hook)(void*, const Context&, long begin) = nullptr;
  void* hook = nullptr;

  bool training() const { return phase == Phase::training; }

  /// Sums n values over all workers of the rank, and over ranks where a policy asks for it (SyncBatchNorm). All workers
  /// call it at the same place; all get the same sums, added in the order of the workers. Ranks are asked once, for all n values,
  /// however many workers a rank has.
  void reduce_statistics(double* values, long n) const {
    if (worker.count > 1) each_piece(n, [&](long at, long size) { sum_workers(values + at, size); });
    if (!statistics_hook) return;
    if (worker.index == 0) statistics_hook(hook, values, n);
    if (worker.count > 1) each_piece(n, [&](long at, long size) { copy_from_first(values + at, size); });
  }

  /// True where the workers divide one gradient among them instead of adding up their own: a layer whose needs() declare
  /// splits_gradients then computes, between two barriers, its share of the columns over the samples of all workers.
  bool split_gradients() const { return split; }

  /// The array of the whole batch, given this worker's slice of it.
  template <class T> T* whole(T* slice, long pitch) const { return slice - first * pitch; }

 private:
  /// visit(at, size): n values in pieces that `exchange` holds.
  template <class Visit> void each_piece(long n, Visit visit) const {
    for (long at = 0; at < n; at += exchange_size) visit(at, n - at < exchange_size ? n - at : exchange_size);
  }
  void sum_workers(double* values, long n) const {
    double* mine = exchange + worker.index * exchange_size;
    for (long i = 0; i < n; ++i) mine[i] = values[i];
    worker.barrier();
    for (long i = 0; i < n; ++i) {
      double sum = 0;
      for (int w = 0; w < worker.count; ++w) sum += exchange[w * exchange_size + i];
      values[i] = sum;
    }
    worker.barrier();
  }
  /// Worker 0's values for all.
  void copy_from_first(double* values, long n) const {
    for (long i = 0; worker.index == 0 && i < n; ++i) exchange[i] = values[i];
    worker.barrier();
    for (long i = 0; i < n; ++i) values[i] = exchange[i];
    worker.barrier();
  }
};

namespace detail {
/// What a frame has beside the rest where activations are stored in another type than the parameters.
template <class Scalar, class Activation> struct CastWeights {
  const Activation* weights =
      nullptr;  ///< the layer's parameters in the activations' type: same layout, made anew after each change
};
template <class Scalar> struct CastWeights<Scalar, Scalar> {};
}  // namespace detail

/// The call frame of a layer: every piece of memory that it may touch. Per-sample arrays start at this worker's slice. Activation
/// is another type than Scalar for layers only that say computes_in: the others get their samples as Scalar. The gaps behind
/// samples of x, y, dy and dx may hold anything, even NaN: what a layer reads there must not reach a value of y, dx or gradients,
/// and it may write there what it likes. Gaps of parameters and of their gradients are zero, and a layer leaves the latter so.
template <class Scalar_, class Device_, class Activation_ = Scalar_> struct Frame : detail::CastWeights<Scalar_, Activation_> {
  using Scalar = Scalar_;
  using Device = Device_;
  using Activation = Activation_;
  const Scalar* parameters = nullptr;  ///< of this layer, in the order of LayerInfo::parameters, rows padded
  Scalar* gradients = nullptr;         ///< the same layout; += unless overwrites_gradients and !accumulate
  Scalar* buffers = nullptr;
  Scalar* packed_weights = nullptr;  ///< KernelNeeds::packed_weights, written by pack_weights(), read by the others
  const Activation* x = nullptr;     ///< (batch, sample_pitch(In)); in backward only with saves_input
  Activation* y = nullptr;           ///< (batch, sample_pitch(output)); in backward only with saves_output
  const Activation* dy = nullptr;
  Activation* dx = nullptr;              ///< null: nobody wants it
  const Activation* addend = nullptr;    ///< of a layer that joins_sum: y is to be max(0, its output + this)
  Activation* dsum = nullptr;            ///< likewise in backward, which writes the gradient of the sum there
  bool adds_dx = false;                  ///< of a layer that says so: adds to dx what else it would write
  Scalar* saved_for_backward = nullptr;  ///< (batch, LayerInfo::saved_for_backward)
  std::byte* saved_bytes = nullptr;      ///< (batch, LayerInfo::saved_bytes)
  Scalar* batch_statistics = nullptr;
  Scalar* workspace = nullptr;
  const std::int32_t* tokens = nullptr;  ///< (batch, In), dense, in place of x: of a layer that takes tokens
  long batch = 0;                        ///< samples in this slice
  int ordinal = 0;                       ///< of the layer in its network: keys random numbers
  const Context<Scalar, Device>* context = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::nn
