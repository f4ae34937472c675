// SPDX-License-Identifier: Apache-2.0
// What a model's gradients are to a loop by hand, so that a step without new ones is refused.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Nobody has made gradients; an executor has made them, or the user may have written them; a step has used them; an executor has
/// made a part of them, and nobody but it has seen them.
enum class GradientState : unsigned char { none, made, used, part };

}  // namespace skein::inline SKEIN_ABI::nn
