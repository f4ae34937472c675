// SPDX-License-Identifier: Apache-2.0
// What a layer is. A layer is a type without state: it describes itself for an input shape by one constexpr value
// (LayerInfo), and has pure functions over the memory that a Frame names:
//
//     struct Scale {                                                       // y = scale * x, one factor a channel
//       static constexpr LayerInfo describe(Extents in);
//       template <class In, class Frame> static void forward(Frame& f);    // In: the Shape<...> of one sample
//       template <class In, class Frame> static void backward(Frame& f);
//       // optional: what the operations of a device want beside (packed weights, a workspace a worker, divided gradients)
//       template <class Device> static constexpr KernelNeeds needs(Extents in);
//       template <class In, class Frame> static void pack_weights(Frame& f);     // with it: makes the packed weights
//       template <class In, class Frame> static void prepare(Frame& f);    // optional: whatever must exist before step 1
//       // optional, the two together: backward in two halves, of which a pipeline delays the second
//       template <class In, class Frame> static void backward_input(Frame& f);
//       template <class In, class Frame> static void backward_parameters(Frame& f);
//     };
//
// It never sees a communicator, and never allocates. Offsets, position and policy are run-time values: types are
// (layer, shape, device), so that compile time follows the number of distinct layers, not the depth.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../core/shape.hpp"
#include "../core/workers.hpp"
#include "../device/device.hpp"
#include "../ops/kernel_needs.hpp"
#include "../ops/step_values.hpp"
#include "initializers.hpp"

namespace skein::inline SKEIN_ABI::nn {

using ops::KernelNeeds;

/// Why a layer refuses an input. The sentences live in nn/check.hpp.
enum class Fault {
  none,
  wants_flat,
  wants_image,
  wants_sequence,
  wants_volume,
  no_output,
  option_unknown,
  option_twice,
  option_out_of_range,
  option_missing,
  state_of_reversed,
  window_too_large,
  groups_do_not_divide,
  branches_differ,
  repeat_changes_shape,
  repeats_nothing,
  recomputes_state,
  concat_differs,
  reshape_count,
  slice_outside,
  too_many_parameters,
  wants_tokens,
  wants_numbers,
  graph,
  no_describe,
  no_forward,
  no_backward,
  no_needs,
  own
};

/// One trainable array of a layer, row-major, the output index last. See row_pitch for how it is stored.
struct ParameterInfo {
  std::string_view name{};
  Extents extents{};
  Init init = Init::fan_in_uniform;
  long fan_in = 0, fan_out = 0;
  bool decay = true;  ///< does weight decay apply (not to biases and norms in the field's recipes)
};

/// One array that is kept and saved but not trained: running statistics.
struct BufferInfo {
  std::string_view name{};
  Extents extents{};
  Init init = Init::zeros;
};

/// The sizes of a layer's Kronecker factors (second-order methods); 0 where it has none.
struct KroneckerInfo {
  long a = 0, g = 0;
};

/// All that a layer declares for one input, on whatever device: a pure function of the input's extents. "Scalars" are of the
/// model's scalar type.
struct LayerInfo {
  Extents output{};
  std::array<ParameterInfo, 8> parameters{};  ///< unused ones have an empty name
  std::array<BufferInfo, 3> buffers{};
  long saved_for_backward = 0;                     ///< scalars a sample, from forward to backward, beside x and y
  bool saved_by_backward = false;                  ///< `saved_for_backward` is written and read by backward alone
  long saved_bytes = 0;                            ///< bytes a sample, likewise (indices, masks)
  long batch_statistics = 0;                       ///< scalars of the whole batch, likewise (batch mean)
  long flops = 0;                                  ///< of forward, a sample
  bool saves_input = false, saves_output = false;  ///< does backward read x, y
  bool aliases_input = false;                      ///< the output is the input's memory: forward and backward do nothing
  bool couples_batch = false;                      ///< a sample's output depends on others (batch normalisation)
  bool carries_state = false;                      ///< `saved_for_backward` begins where the batch before has left it
  bool overwrites_gradients = false;               ///< backward honours context.accumulate; others only add
  KroneckerInfo kronecker{};
  int tokens = 0;  ///< not 0: its input is integers below this number
  Fault fault = Fault::none;

  constexpr long parameter_count() const {  ///< logical
    long n = 0;
    for (const auto& p : parameters)
      if (!p.name.empty()) n += p.extents.count();
    return n;
  }
  constexpr long stored_parameters() const {
    long n = 0;
    for (const auto& p : parameters)
      if (!p.name.empty()) n += stored_count(p.extents);
    return n;
  }
  constexpr long stored_buffers() const {
    long n = 0;
    for (const auto& b : buffers)
      if (!b.name.empty()) n += stored_count(b.extents);
    return n;
  }
  constexpr int entries() const {
    int n = 0;
    for (const auto& p : parameters) n += !p.name.empty();
    return n;
  }
  constexpr int buffer_entries() const {
    int n = 0;
    for (const auto& b : buffers) n += !b.name.empty();
    return n;
  }
};

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
  std::uint64_t key = 0;                    ///< of this step's random numbers
  std::uint64_t global_first = 0;           ///< first sample of this slice, in the global batch
  const ops::StepValues* values = nullptr;  ///< not null: key and global_first are there, in the device's memory
  FloatMath math = FloatMath::full;         ///< of the precision's compute type; back ends without TF32 ignore it
  Worker worker{};

  // Filled by the executor and the policy; layers call the functions below.
  double* exchange = nullptr;  // (workers, exchange_size)
  long exchange_size = 0;
  void (*statistics_hook)(void*, double*, long) = nullptr;
  void (*ready_hook)(void*, const Context&, long begin, long end) = nullptr;
  void* hook = nullptr;

  bool training() const { return phase == Phase::training; }

  /// Sums n values over all workers of the rank, and over ranks where a policy asks for it (SyncBatchNorm). All workers
  /// call it at the same place; all get the same sums, added in the order of the workers.
  void reduce_statistics(double* values, long n) const {
    if (worker.count > 1) {
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
    if (statistics_hook) {
      if (worker.index == 0) {
        statistics_hook(hook, values, n);
        if (worker.count > 1)
          for (long i = 0; i < n; ++i) exchange[i] = values[i];
      }
      if (worker.count > 1) {
        worker.barrier();
        for (long i = 0; i < n; ++i) values[i] = exchange[i];
        worker.barrier();
      }
    }
  }

  /// True where the workers divide one gradient among them instead of adding up their own: a layer whose needs() declare
  /// splits_gradients then computes, between two barriers, its share of the columns over the samples of all workers.
  bool split_gradients() const { return split; }

  /// The array of the whole batch, given this worker's slice of it.
  template <class T> T* whole(T* slice, long pitch) const { return slice - first * pitch; }
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
/// is another type than Scalar for layers only that say computes_in: the others get their samples as Scalar.
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
  Scalar* saved_for_backward = nullptr;  ///< (batch, LayerInfo::saved)
  std::byte* saved_bytes = nullptr;      ///< (batch, LayerInfo::saved_bytes)
  Scalar* batch_statistics = nullptr;
  Scalar* workspace = nullptr;
  const std::int32_t* tokens = nullptr;  ///< (batch, In), dense, in place of x: of a layer that takes tokens
  long batch = 0;                        ///< samples in this slice
  int ordinal = 0;                       ///< of the layer in its network: keys random numbers
  const Context<Scalar, Device>* context = nullptr;
};

namespace detail {
using ProbeFrame = Frame<float, Cpu>;
}

template <class L> concept HasDescribe = requires(Extents in) {
  { L::describe(in) } -> std::same_as<LayerInfo>;
};
// These look at the declaration only: the body is not instantiated.
template <class L> concept HasForward = requires(detail::ProbeFrame& f) { L::template forward<Shape<1>>(f); };
template <class L> concept HasBackward = requires(detail::ProbeFrame& f) { L::template backward<Shape<1>>(f); };
template <class L> concept HasNeeds = requires(Extents in) {
  { L::template needs<Cpu>(in) } -> std::same_as<KernelNeeds>;
};
template <class L> concept HasPackWeights = requires(detail::ProbeFrame& f) { L::template pack_weights<Shape<1>>(f); };
/// backward_input, later backward_parameters, with the same frame but for dx, make what backward makes. Samples that the second
/// reads beside x, y and dy are in `saved_for_backward`. The first may add to gradients too (a bias); context.accumulate is that
/// of each call.
template <class L> concept HasBackwardHalves = requires(detail::ProbeFrame& f) {
  L::template backward_input<Shape<1>>(f);
  L::template backward_parameters<Shape<1>>(f);
};
template <class L> concept HasPrepare = requires(detail::ProbeFrame& f) { L::template prepare<Shape<1>>(f); };

namespace detail {
template <class L, class Device, class Activation> consteval bool says_computes_in() {
  if constexpr (requires { L::template computes_in<Device, Activation>; }) return L::template computes_in<Device, Activation>;
  else return false;
}
}  // namespace detail
/// Does L (a layer, a fused unit) run on samples that are stored in this type, another than its parameters'? It says so by
///     template <class Device, class Activation> static constexpr bool computes_in = ...;
/// and then gets a Frame<Scalar, Device, Activation>. A layer that does not gets its samples converted, and runs as ever.
template <class L, class Device, class Activation>
inline constexpr bool computes_in = detail::says_computes_in<L, Device, Activation>();

/// A layer with options says which it knows: using options = detail::LayerOptions<...> (nn/options.hpp).
template <class L> concept HasOptions = requires {
  { L::options::fault } -> std::convertible_to<Fault>;
};

/// A leaf of a network: describes itself, runs forward and backward.
template <class L> concept Layer = HasDescribe<L> && HasForward<L> && HasBackward<L>;

}  // namespace skein::inline SKEIN_ABI::nn

namespace skein::inline SKEIN_ABI {
using nn::Init;
using nn::KernelNeeds;
using nn::LayerInfo;
}  // namespace skein::inline SKEIN_ABI
