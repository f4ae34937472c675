// SPDX-License-Identifier: Apache-2.0
// What a model's gradients are to a loop by hand, so that a step without new ones is refused.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Who has made the gradients last, and who has used them.
enum class GradientState : unsigned char {
  none,  ///< nobody has made any
  made,  ///< an executor has, or the user may have written them
  used,  ///< a step has used them
  part,  ///< an executor has made a part of them, which nobody else has seen
  lost   ///< the call that was to make them has thrown, or has not ended
};

}  // namespace skein::inline SKEIN_ABI::nn
