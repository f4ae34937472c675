// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN.
#pragma once
#include "../reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

constexpr long onednn_derived(const Conv2dGeometry&) { return 0; }
constexpr long onednn_workspace(const Conv2dGeometry&) { return 0; }
template <class Scalar> inline constexpr bool onednn_takes = false;
template <class Scalar> void onednn_conv2d_derive(const Conv2dGeometry&, const Conv2dCall<Scalar>&) {}
inline void onednn_conv2d_prepare(const Conv2dGeometry&, long) {}
template <class Scalar> void onednn_conv2d_forward(const Conv2dGeometry&, const Conv2dCall<Scalar>&) {}
template <class Scalar> void onednn_conv2d_backward(const Conv2dGeometry&, const Conv2dCall<Scalar>&) {}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
