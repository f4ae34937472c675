// SPDX-License-Identifier: Apache-2.0
// What holds of a run while it is within some container, or in one call of its backward: each of these sets it and puts it back.
#pragma once
#include "run.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Inside Residual, RectifiedResidual, Concat and Repeat gradients lie in each worker's part of the scratch memory, as inputs do
/// that a Sequential makes again, so that no array there is whole for all workers: layers do not split gradients there.
template <class R> class NoSplit {
 public:
  explicit NoSplit(R& r) : run_(r), before_(r.context.split) { r.context.split = false; }
  ~NoSplit() { run_.context.split = before_; }
  NoSplit(const NoSplit&) = delete;
  NoSplit& operator=(const NoSplit&) = delete;

 private:
  R& run_;
  bool before_;
};
/// Sets a flag while it lives.
class FlagWithin {
 public:
  FlagWithin(bool& flag, bool value) : flag_(flag), before_(flag) { flag = value; }
  ~FlagWithin() { flag_ = before_; }
  FlagWithin(const FlagWithin&) = delete;
  FlagWithin& operator=(const FlagWithin&) = delete;

 private:
  bool& flag_;
  bool before_;
};
/// While it lives, no layer leaves a half of its backward for later.
template <class R> struct WholeBackward {
  explicit WholeBackward(R&) {}
};
template <Defers R> struct WholeBackward<R> : FlagWithin {
  explicit WholeBackward(R& r) : FlagWithin(r.halves, false) {}
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
