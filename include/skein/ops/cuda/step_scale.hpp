// SPDX-License-Identifier: Apache-2.0
// The factor of a step's gradients and its sums, on the GPU: one small kernel each.
#pragma once
#include "../step_scale.hpp"
#include "for_each.hpp"
