// SPDX-License-Identifier: Apache-2.0
// EachPosition<L>: a layer of flat samples on each position of a sequence, (T, C) to (T, N), with one set of parameters: what
// PyTorch's Linear does to the last axis. T positions of a batch are T times as many samples of L.
#pragma once
#include <type_traits>

#include "../ops/elementwise.hpp"
#include "linear.hpp"

namespace skein::inline SKEIN_ABI {
namespace check {
template <class L> inline constexpr bool of_flat_samples = (nn::HasDescribe<L> && nn::HasForward<L> && nn::HasBackwardHalves<L>);

template <class L> struct flat_samples {  // of its own: a network derived from an EachPosition in error is still a layer
  static_assert(of_flat_samples<L>,
                "EachPosition<L> takes one layer of flat samples whose backward comes in halves, such as Linear<N>: put it "
                "around each such layer of a Sequential; activations and layers of expressions take sequences as they are");
};
}  // namespace check

namespace nn {
/// Layer is a leaf such as Linear<65>, which keeps nothing beside x and y for backward. Its samples lie in padded rows and
/// positions do not: where the two differ they are copied, once each way.
template <class Layer> struct EachPosition {
  static_assert(sizeof(check::flat_samples<Layer>) > 0);

  using L = std::conditional_t<check::of_flat_samples<Layer>, Layer, Linear<1>>;  // of another the sentence alone is the error
  using options = typename detail::OptionsOf<L>::type;
  static constexpr OutputKind gives = output_kind_of<L>();

  static constexpr LayerInfo describe(Extents in) {
    const Extents one{1, {in.last()}};
    LayerInfo info = L::describe(one);
    const int positions = static_cast<int>(in.count() / in.last());
    const int n = info.output.last();
    const long saved = info.saved_for_backward + info.saved_bytes + info.batch_statistics;
    if (info.fault == Fault::none) info.fault = in.rank != 2 ? Fault::wants_sequence : saved > 0 ? Fault::own : Fault::none;
    const bool copies_x = padded(one), copies_y = padded({1, {n}});
    info.output = {2, {positions, n}};
    info.saved_for_backward =  // of x and its gradient; of y and its gradient, which take one array by turns where they can
        positions * ((copies_x ? 2 * row_pitch(in.last()) : 0) + (copies_y ? (1 + info.saves_output) * row_pitch(n) : 0));
    info.saved_by_backward = false;
    info.saves_input = info.saves_input && !copies_x;
    info.saves_output = info.saves_output && !copies_y;
    info.remakes_output = Remakes::never;
    info.flops *= positions;
    if (info.curvature[0].unit_wise || info.curvature[1].a > 0) info.curvature = {};  // of one matrix alone
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    KernelNeeds all;
    if constexpr (HasNeeds<L>) all = L::template needs<Device>(Extents{1, {in.last()}});
    all.splits_gradients = false;  // positions of other workers are not in one array with gaps
    return all;
  }
  template <class Device, class Activation> static constexpr bool computes_in = nn::computes_in<L, Device, Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    Frame inner = rows_of<In>(f);
    if constexpr (Sizes<In>::copies_x) {
      auto* x = x_rows<In>(f);
      copy_rows<In, Sizes<In>::c>(f, x, row_pitch(Sizes<In>::c), f.x, Sizes<In>::c);
      inner.x = x;
    }
    if constexpr (Sizes<In>::copies_y) inner.y = y_rows<In>(f);
    L::template forward<typename Sizes<In>::One>(inner);
    if constexpr (Sizes<In>::copies_y) copy_rows<In, Sizes<In>::n>(f, f.y, Sizes<In>::n, inner.y, row_pitch(Sizes<In>::n));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Frame inner = rows_of<In>(f);
    auto context = *f.context;  // needs() of the layer alone may say that workers divide its gradient: see needs() above
    context.split = false;
    inner.context = &context;
    if constexpr (Sizes<In>::copies_x) {
      inner.x = x_rows<In>(f);
      if (f.dx) inner.dx = dx_rows<In>(f);
    }
    if constexpr (Sizes<In>::copies_y) {
      auto* dy = dy_rows<In>(f);
      copy_rows<In, Sizes<In>::n>(f, dy, row_pitch(Sizes<In>::n), f.dy, Sizes<In>::n);
      inner.y = y_rows<In>(f);
      inner.dy = dy;
    }
    L::template backward<typename Sizes<In>::One>(inner);
    if constexpr (Sizes<In>::copies_x)
      if (f.dx) copy_rows<In, Sizes<In>::c>(f, f.dx, Sizes<In>::c, inner.dx, row_pitch(Sizes<In>::c));
  }
  /// Both factors are means over the positions, as kfac-pytorch has them: T positions are T times as many samples of L.
  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) requires requires {
    L::template kronecker_factors<Shape<static_cast<int>(In::extents.last())>>(f, sums);
  }
  {
    Frame inner = rows_of<In>(f);
    if constexpr (Sizes<In>::copies_x) inner.x = x_rows<In>(f);
    if constexpr (Sizes<In>::copies_y) inner.dy = dy_rows<In>(f);
    L::template kronecker_factors<typename Sizes<In>::One>(inner, MeanOverPositions<Sums, Sizes<In>::positions>{sums});
  }
  template <class In, class Frame> static void pack_weights(Frame& f) {
    if constexpr (HasPackWeights<L>) L::template pack_weights<typename Sizes<In>::One>(f);
  }
  template <class In, class Frame> static void prepare(Frame& f) {
    if constexpr (HasPrepare<L>) {
      Frame inner = rows_of<In>(f);
      L::template prepare<typename Sizes<In>::One>(inner);
    }
  }

 private:
  template <class Sums, long Positions> struct MeanOverPositions {
    template <class Scalar> void inputs(const Scalar* x, long rows, long columns, long pitch) const {
      sums.inputs(x, rows, columns, pitch, Scalar(1) / static_cast<Scalar>(Positions));
    }
    template <class Scalar> void gradients(const Scalar* dy, long rows, long pitch) const {
      sums.gradients(dy, rows, pitch, Scalar(1) / static_cast<Scalar>(Positions));
    }
    const Sums& sums;
  };
  static constexpr bool padded(const Extents& flat) { return row_pitch(flat.last()) != flat.last(); }
  template <class In> struct Sizes {
    static constexpr long c = In::extents.last(), positions = In::count / c;
    using One = Shape<static_cast<int>(c)>;
    static constexpr long n = L::describe(One::extents).output.last();
    static constexpr bool copies_x = row_pitch(c) != c, copies_y = row_pitch(n) != n;
    static constexpr bool saves_y = L::describe(One::extents).saves_output;
  };
  /// The frame of as many samples as there are positions.
  template <class In, class Frame> static Frame rows_of(const Frame& f) {
    Frame inner = f;
    inner.batch = f.batch * Sizes<In>::positions;
    inner.saved_for_backward = nullptr;
    return inner;
  }
  // What is copied lies in this order.
  template <class In, class Frame> static auto* x_rows(const Frame& f) { return rows<In>(f, 0, 0); }
  template <class In, class Frame> static auto* dx_rows(const Frame& f) { return rows<In>(f, 1, 0); }
  template <class In, class Frame> static auto* y_rows(const Frame& f) { return rows<In>(f, 2, 0); }
  template <class In, class Frame> static auto* dy_rows(const Frame& f) {  // over y, which nobody reads in backward
    return rows<In>(f, 2, Sizes<In>::saves_y);
  }
  template <class In, class Frame> static auto* rows(const Frame& f, long of_x, long of_y) {
    const long pitch = (Sizes<In>::copies_x ? of_x * row_pitch(Sizes<In>::c) : 0) + of_y * row_pitch(Sizes<In>::n);
    return reinterpret_cast<typename Frame::Activation*>(f.saved_for_backward + f.batch * Sizes<In>::positions * pitch);
  }
  template <class In, long Columns, class Frame, class T>
  static void copy_rows(const Frame& f, T* to, long to_pitch, const T* from, long from_pitch) {
    ops::copy_rows<typename Frame::Device>(to, to_pitch, from, from_pitch, f.batch * Sizes<In>::positions, Columns);
  }
};

}  // namespace nn
}  // namespace skein::inline SKEIN_ABI
