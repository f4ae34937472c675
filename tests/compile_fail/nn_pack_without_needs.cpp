// expect: a layer with pack_weights() says how much its copies take: give it template <class Device> static constexpr sk::KernelNeeds needs(sk::Extents in)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Packs {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
#ifdef SKEIN_TWIN
  template <class Device> static constexpr sk::KernelNeeds needs(sk::Extents) { return {.packed_weights = 16}; }
#endif
  template <class In, class Frame> static void forward(Frame&) {}
  template <class In, class Frame> static void backward(Frame&) {}
  template <class In, class Frame> static void pack_weights(Frame&) {}
};

int main() { sk::Model<sk::nn::Sequential<Packs>, sk::Shape<4>> model; }
