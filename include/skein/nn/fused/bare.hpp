// SPDX-License-Identifier: Apache-2.0
// Bare<L>: a layer without the host's private memory. describe() of a layer tells what the host's kernels want: packed or
// transposed copies of the weights, a workspace a worker, gradients that workers divide among them. A device whose libraries read
// the weights as they are, and have their own workspace, runs the same layer without. The rewriting puts it in where
// Fusion<Device, L> says so:
//
//     template <int N, class... Options>
//     struct Fusion<Cuda, Linear<N, Options...>> { using type = Bare<Linear<N, Options...>>; };
#pragma once
#include "../fusion.hpp"
#include "../layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// L as it is, but for packed weights, workspace and divided gradients; there is no pack_weights(). L's operations on that
/// device get null for `packed_weights` and `workspace`, or memory of nobody's: they must not touch it.
template <class L> struct Bare {
  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = L::describe(in);
    info.packed_weights = info.workspace = 0;
    info.splits_gradients = false;
    return info;
  }
  template <class In, class Frame> static void forward(Frame& f) { L::template forward<In>(f); }
  template <class In, class Frame> static void backward(Frame& f) { L::template backward<In>(f); }
  template <class In, class Frame>
  requires HasPrepare<L>
  static void prepare(Frame& f) { L::template prepare<In>(f); }
  template <class In, class Frame>
  requires requires { L::template kernel<In, Frame>(); }
  static constexpr std::string_view kernel() { return L::template kernel<In, Frame>(); }
  template <class Device, class Activation> static constexpr bool computes_in = nn::computes_in<L, Device, Activation>;
};

}  // namespace skein::inline SKEIN_ABI::nn
