// SPDX-License-Identifier: Apache-2.0
// LayerNorm on a GPU: the same layer, over the device's operation.
#pragma once
#include "../../ops/cuda/row_normalize.hpp"
#include "../layer_norm.hpp"
