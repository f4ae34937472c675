// SPDX-License-Identifier: Apache-2.0
// Dropout: in training each value is set to zero with probability Rate, and the others are scaled up, so that evaluation is
// the identity. Srivastava et al., JMLR 2014. The mask is a pure function of (step's key, layer, global sample, element): the
// same on any number of workers and ranks; backward makes it again instead of keeping it.
#pragma once
#include "../core/half.hpp"
#include "../ops/dropout.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Rate<N, D>, the share that is set to zero (default one half).
template <class... Options> struct Dropout {
  using options = detail::LayerOptions<List<Rate<1, 2>>, Options...>;
  static constexpr bool keeps_output_kind = true;
  static constexpr double rate = detail::option<Rate>(options{}).ratio();

  /// Samples of any type on a GPU: the arithmetic is float's.
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info;
    info.output = in;
    info.flops = in.count();
    return info;
  }
  template <class In, class Frame> static void forward(Frame& f) { apply<In>(f, f.x, f.y); }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) apply<In>(f, f.dy, f.dx);
  }

 private:
  template <class In, class Frame, class Value> static void apply(const Frame& f, const Value* from, Value* to) {
    const auto& context = *f.context;
    ops::DropoutShape shape;
    shape.rows = f.batch;
    shape.n = In::count;
    shape.pitch = sample_pitch(In::extents);
    shape.values = context.values;
    shape.purpose = 0x64726f70ull + static_cast<std::uint64_t>(f.ordinal);  // "drop"
    shape.key = random_key(context.key, shape.purpose);
    shape.first = context.global_first;
    ops::dropout<typename Frame::Device>(shape, context.training() ? rate : 0.0, from, to);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
