// SPDX-License-Identifier: Apache-2.0
// The point where neighbours become one layer: a header that has a fused composite specialises Fusion for the pattern. The
// rewriting itself (longest pattern first; patterns of one layer too) is in nn/fused_network.hpp. A composite is an ordinary
// layer whose parameters are those of its parts, in their order: names, tables and files follow the network that the user wrote.
#pragma once
#include "../core/config.hpp"
#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// `type` is the composite that runs Layers... on Device, or void: not fused.
template <class Device, class... Layers> struct Fusion { using type = void; };

/// A layer that the operations of another device than the host run: what its kernels want, needs(), is asked for that device. The
/// rewriting puts it in where a layer has needs().
template <class L, class Device> struct OnDevice : L { using kernel_device = Device; };

}  // namespace skein::inline SKEIN_ABI::nn
