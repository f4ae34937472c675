// SPDX-License-Identifier: Apache-2.0
// What a GPU runs for LayerNorm: the same layer without the host's workspace.
#pragma once
#include "../../ops/cuda/row_normalize.hpp"
#include "../fused/bare.hpp"
#include "../layer_norm.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <class... Options> struct Fusion<Cuda, LayerNorm<Options...>> { using type = Bare<LayerNorm<Options...>>; };

}  // namespace skein::inline SKEIN_ABI::nn
