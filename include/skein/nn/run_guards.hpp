// SPDX-License-Identifier: Apache-2.0
// What holds of a run while it is within some container, or in one call of its backward: each of these sets it and puts it back.
#pragma once
#include "../core/flag_within.hpp"
#include "run.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Inside Residual, RectifiedResidual, Concat and Repeat gradients lie in each worker's part of the scratch memory, as inputs do
/// that a Sequential makes again, so that no array there is whole for all workers: layers do not split gradients there.
template <class R> struct NoSplit : skein::detail::FlagWithin {
  explicit NoSplit(R& r) : FlagWithin(r.context.split, false) {}
};
/// While it lives, no layer leaves a half of its backward for later.
template <class R> struct WholeBackward {
  explicit WholeBackward(R&) {}
};
template <Defers R> struct WholeBackward<R> : skein::detail::FlagWithin {
  explicit WholeBackward(R& r) : FlagWithin(r.halves, false) {}
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
