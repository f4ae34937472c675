// SPDX-License-Identifier: Apache-2.0
// What the layers of normalisation have in common: a weight and a bias of each channel (the last extent), and the memory of an
// operation that has both.
#pragma once
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn::detail {

/// Describes a layer that normalises samples like `in`, multiplies each channel by its weight and, with a bias, shifts it.
constexpr LayerInfo normalization_info(Extents in, bool has_bias = true) {
  const Extents channels{1, {in.last()}};
  LayerInfo info{.output = in};
  info.parameters[0] = {.name = "weight", .extents = channels, .init = Init::ones, .decay = false};
  if (has_bias) info.parameters[1] = {.name = "bias", .extents = channels, .init = Init::zeros, .decay = false};
  info.saves_input = true;
  info.curvature[0] = {.a = has_bias ? 2 : 1, .g = in.last(), .unit_wise = true};
  return info;
}

/// The call of an operation over (samples, pixels, channels): its samples, weights and gradients are the layer's.
template <class Call, class In, class Frame> Call normalization_call(const Frame& f) {
  constexpr long channels = In::extents.last(), pitch = row_pitch(channels);
  Call c;
  c.samples = f.batch;
  c.pixels = In::extents.count() / channels;
  c.x = f.x;
  c.y = f.y;
  c.dy = f.dy;
  c.dx = f.dx;
  c.weight = f.parameters;
  c.bias = f.parameters + pitch;
  c.dweight = f.gradients;
  c.dbias = f.gradients ? f.gradients + pitch : nullptr;
  c.workspace = f.workspace;
  return c;
}

}  // namespace skein::inline SKEIN_ABI::nn::detail
