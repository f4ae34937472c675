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
//       // with LayerInfo::remakes_output: writes y once more before the layer behind reads it in backward; nobody keeps it
//       template <class In, class Frame> static void remake(Frame& f);
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
#include "../device/device.hpp"
#include "../ops/kernel_needs.hpp"
#include "../plan/curvature_block.hpp"
#include "frame.hpp"
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
  parameter_names,
  wants_tokens,
  wants_numbers,
  graph,
  no_describe,
  not_constexpr,
  describes_no_output,
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

/// From what a layer can make its output of training once more.
enum class Remakes {
  never,
  from_saved,  ///< saved_for_backward and batch_statistics
  from_input   ///< x, too, which it saves
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
  Remakes remakes_output = Remakes::never;         ///< remake() writes the output of training once more
  bool aliases_input = false;                      ///< the output is the input's memory: forward and backward do nothing
  bool couples_batch = false;                      ///< a sample's output depends on others (batch normalisation)
  bool carries_state = false;                      ///< `saved_for_backward` begins where the batch before has left it
  bool overwrites_gradients = false;               ///< backward honours context.accumulate; others only add
  /// What second-order methods take of it (nn/kronecker.hpp).
  std::array<plan::CurvatureBlock, 2> curvature{};
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
  /// No two parameters have one name: files and groups find them by it.
  constexpr bool names_differ() const {
    for (std::size_t i = 1; i < parameters.size() && !parameters[i].name.empty(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (parameters[i].name == parameters[j].name) return false;
    return true;
  }
  constexpr int buffer_entries() const {
    int n = 0;
    for (const auto& b : buffers) n += !b.name.empty();
    return n;
  }
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

/// L can make its output the sum with another edge of the same shape, and a ReLU behind it: the end of a residual block. It says
///     static constexpr bool joins_sum = true;
/// and reads Frame::addend in forward, Frame::dsum in backward, where it gets its output, too. Without them it is itself.
template <class L> concept JoinsSum = requires { requires L::joins_sum; };
/// L can add to dx: template <class In, class Frame> static constexpr bool adds_dx = ...; and reads Frame::adds_dx.
template <class L, class In, class Frame> concept AddsToGradient = requires { requires L::template adds_dx<In, Frame>; };

namespace detail {
template <class L, class Device, class Activation> consteval bool says_computes_in() {
  if constexpr (requires { L::template computes_in<Device, Activation>; }) return L::template computes_in<Device, Activation>;
  else return false;
}
}  // namespace detail
/// Does L (also a fused one) run on samples that are stored in this type, another than its parameters'? It says so by
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
