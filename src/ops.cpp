// SPDX-License-Identifier: Apache-2.0
// skein::compiled: kernels of float that most networks share.
#include <skein/ops/cpu/far_panel.hpp>
#include <skein/ops/cpu/gathered_conv2d.hpp>
#include <skein/ops/cpu/optimizer.hpp>
#include <skein/ops/cpu/packed_panels.hpp>
#include <skein/ops/cpu/softmax.hpp>
#include <skein/ops/cpu/tile.hpp>
#include <skein/ops/cpu/transpose.hpp>

namespace skein::inline SKEIN_ABI::ops::cpu {
template void transpose<float>(long, long, long, const float*, long, float*, long);
#if SKEIN_WITH_XSIMD
template CrossEntropySums cross_entropy<float>(const CrossEntropyArguments<float>&);
template class GatheredConv2d<float>;
template void sgd<float>(const SgdArguments<float>&);
template void adam<float>(const AdamArguments<float>&);
template double sum_of_squares<float>(const UpdateArguments<float>&);
#define SKEIN_NOTHING
SKEIN_PANELS_OF_FLOAT(SKEIN_NOTHING)
SKEIN_FAR_PANELS_OF_FLOAT(SKEIN_NOTHING)
SKEIN_PACKED_PANELS_OF_FLOAT(SKEIN_NOTHING)
#endif
}  // namespace skein::inline SKEIN_ABI::ops::cpu
