// SPDX-License-Identifier: Apache-2.0
// Slice<Begin, End>: some columns of the last extent, such as the channels of an image or the values of one input of a row.
#pragma once
#include "../ops/for_each.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Output value i of a slice from its input; one index a value.
template <class Scalar> struct TakeColumns {
  const Scalar* x;
  Scalar* y;
  long rows, width, begin, columns, x_pitch, y_pitch;  // rows of a sample; pitches from sample to sample
  constexpr void operator()(long i) const {
    const long sample = i / (rows * width), at = i % (rows * width);
    y[sample * y_pitch + at] = x[sample * x_pitch + at / width * columns + begin + at % width];
  }
};
/// Input gradient value i: that of the column, or 0.
template <class Scalar> struct PutColumns {
  const Scalar* dy;
  Scalar* dx;
  long rows, width, begin, columns, x_pitch, y_pitch;
  constexpr void operator()(long i) const {
    const long sample = i / (rows * columns), at = i % (rows * columns), column = at % columns - begin;
    dx[sample * x_pitch + at] = column >= 0 && column < width ? dy[sample * y_pitch + at / columns * width + column] : Scalar(0);
  }
};
}  // namespace detail

/// Columns [Begin, End) of the last extent, as x[..., begin:end] in PyTorch: (h, w, c) to (h, w, End - Begin).
template <int Begin, int End> struct Slice {
  static_assert(0 <= Begin && Begin < End, "Slice<Begin, End> takes columns Begin, Begin + 1, ..., End - 1: 0 <= Begin < End");

  static constexpr LayerInfo describe(Extents in) {
    const bool inside = End <= in.last();
    Extents out = in;
    out.e[out.rank - 1] = End > Begin ? End - Begin : 1;
    return {.output = out, .fault = inside ? Fault::none : Fault::slice_outside};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long columns = In::extents.last(), rows = In::count / columns, width = End - Begin;
    ops::for_each<typename Frame::Device>(
        f.batch * rows * width, detail::TakeColumns<typename Frame::Activation>{f.x, f.y, rows, width, Begin, columns,
                                                                                sample_pitch(In::extents), pitch<In>()});
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr long columns = In::extents.last(), rows = In::count / columns, width = End - Begin;
    if (f.dx)
      ops::for_each<typename Frame::Device>(
          f.batch * In::count, detail::PutColumns<typename Frame::Activation>{f.dy, f.dx, rows, width, Begin, columns,
                                                                              sample_pitch(In::extents), pitch<In>()});
  }

 private:
  template <class In> static constexpr long pitch() { return sample_pitch(describe(In::extents).output); }
};

}  // namespace skein::inline SKEIN_ABI::nn
