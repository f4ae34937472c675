// SPDX-License-Identifier: Apache-2.0
// A layer on a device beside the same layer on the Cpu: same parameters, buffers, inputs and gradients of the output, through
// layer_harness.hpp; everything that comes out must agree. For .cu tests that include skein/cuda.hpp.
//
//     support::agree<nn::Linear<10>, sk::Shape<84>>({.batch = 5});  // on Cuda as a network would run it: rewritten
//     support::agree<nn::Linear<10>, sk::Shape<84>, double>({.batch = 5, .accumulate = true});
#pragma once
#include <skein/nn/fused_network.hpp>

#include "close.hpp"
#include "layer_harness.hpp"

namespace support {

struct AgreeOptions {
  long batch = 5;
  bool wants_dx = true;
  bool accumulate = false;  ///< two backward passes, the second adds to the first
  sk::nn::Phase phase = sk::nn::Phase::training;
  std::uint64_t key = 7, global_first = 3;  ///< of random numbers
  double terms = 0;                         ///< magnitude of what was cancelled; 0: by the layer's sizes
  Roundings roundings = Roundings::arithmetic;
};

namespace detail {
template <class A, class B>
long values_apart(const A& a, const B& b, long rows, long count, long pitch, Roundings r, double scale) {
  using S = std::remove_cvref_t<decltype(a[0])>;
  long wrong = 0;
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < count; ++j) wrong += !close<S>(a[i * pitch + j], b[i * pitch + j], r, scale);
  return wrong;
}
}  // namespace detail

/// Forward and backward of OnDevice on Device and of OnCpu on the Cpu.
template <class OnCpu, class OnDevice, class In, class Scalar, class Device> void agree_on(const AgreeOptions& o) {
  LayerHarness<OnCpu, In, Scalar> here(o.batch);
  LayerHarness<OnDevice, In, Scalar, Device> there(o.batch);
  static_assert(here.info.stored_parameters() == there.info.stored_parameters() && here.info.output == there.info.output);
  here.context.phase = there.context.phase = o.phase;
  here.context.key = there.context.key = o.key;
  here.context.global_first = there.context.global_first = o.global_first;
  const double scale = o.terms > 0 ? o.terms : static_cast<double>(here.in_count + here.out_count + o.batch);
  INFO("batch " << o.batch << (o.accumulate ? ", accumulated" : "") << (o.wants_dx ? "" : ", no dx")
                << (o.phase == sk::nn::Phase::training ? "" : ", evaluation"));
  for (int turn = 0; turn < (o.accumulate ? 2 : 1); ++turn) {
    here.forward();
    there.forward();
    CHECK(detail::values_apart(there.y, here.y, o.batch, here.out_count, here.out_pitch, o.roundings, scale) == 0);
    if (o.phase == sk::nn::Phase::evaluation) break;
    here.backward(o.wants_dx, turn == 1);
    there.backward(o.wants_dx, turn == 1);
    if (o.wants_dx)
      CHECK(detail::values_apart(there.dx, here.dx, o.batch, here.in_count, here.in_pitch, o.roundings, scale) == 0);
    CHECK(detail::values_apart(there.gradients(), here.gradients(), 1, here.gradients().size(), 0, o.roundings, scale) == 0);
    CHECK(there.worst_gap() == 0);
  }
  CHECK(detail::values_apart(there.buffers, here.buffers, 1, here.buffers.size(), 0, o.roundings, scale) == 0);
  CHECK(there.intact());
}

/// The same with two forms of the layer on Cuda.
template <class OnCpu, class OnDevice, class In, class Scalar>
requires requires { In::extents; }
void agree(const AgreeOptions& o = {}) { agree_on<OnCpu, OnDevice, In, Scalar, sk::Cuda>(o); }
/// The same with one layer, rewritten for Cuda as in a network.
template <class L, class In, class Scalar = float>
requires requires { In::extents; }
void agree(const AgreeOptions& o = {}) { agree_on<L, sk::nn::Fused<L, sk::Cuda>, In, Scalar, sk::Cuda>(o); }

}  // namespace support
