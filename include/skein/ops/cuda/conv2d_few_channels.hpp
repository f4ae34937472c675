// SPDX-License-Identifier: Apache-2.0
// Own kernels for convolutions of few channels, as the first ones of a network are: an image, its gradient and the filters fit
// into the memory that a block of threads shares. cuDNN's deterministic kernels are made for many channels: on an H200 its filter
// gradient of LeNet's second convolution took 374 us of a step of 700, where the bytes take less than 5. A block has one image in
// float, with its margins of zeros, so that no tap is looked at twice; a thread takes 8 filters (or channels) of a pixel. The
// filter gradient of each block of images goes to scratch memory, and is added up in a fixed order.
//
//     s the sizes; x images, y outputs, dx, dy their gradients, w weights of a tap; f a filter, c a channel, kx, ky a place of
//     the window, r a row of an array with margins, i an element of it, k a filter (or channel) of a chunk, u a unit of a thread
#pragma once
#include <type_traits>

#include "../../device/cuda/launch_blocks.hpp"
#include "../reference/conv2d.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The sizes of a convolution of few channels, in floats of shared memory.
struct FewChannels {
  static constexpr int threads = 256, chunk = 8;  // of a block; filters or channels that a thread takes
  static constexpr int units_of_thread = 4;       // most (tap, chunk) that a thread of the filter gradient has
  int height, width, channels, filters, taps;     // taps: of the window, with the channels in it
  int kernel, kernel_rows;                        // columns and rows of the window
  int margin, margin_rows;                        // padding, on each side
  int out_width, out_pixels;
  long weight_pitch;

  constexpr explicit FewChannels(const Conv2dGeometry& g)
      : height(g.height), width(g.width), channels(g.channels), filters(g.filters), taps(static_cast<int>(g.weight_rows())),
        kernel(g.kernel), kernel_rows(g.window_height()), margin(g.padding), margin_rows(g.padding_height()),
        out_width(g.out_width()), out_pixels(static_cast<int>(g.out_pixels())), weight_pitch(g.weight_pitch()) {}

  /// Does it take this geometry?
  static constexpr bool takes(const Conv2dGeometry& g) {
    if (g.groups != 1 || g.dimensions > 2 || g.depth != 1 || g.stride != 1 || g.dilation != 1 || !g.fits()) return false;
    if (g.padding >= g.kernel || g.channels > chunk || g.filters > 4 * chunk || g.in_pixels() > 4096) return false;
    const FewChannels s(g);
    const long most = static_cast<long>(skein::cuda::most_shared_bytes / sizeof(float));
    return s.units() <= threads * units_of_thread && s.image() + s.weights() <= most && s.gradient() + s.turned() <= most &&
           s.image() + s.columns() + s.places() <= most;
  }

  constexpr int filter_chunks() const { return (filters + chunk - 1) / chunk; }
  constexpr int wide_filters() const { return filter_chunks() * chunk; }
  /// The image with its margins: a row, all of it.
  constexpr int image_row() const { return (width + 2 * margin) * channels; }
  constexpr long image() const { return whole(1L * (height + 2 * margin_rows) * image_row()); }
  /// The filters (taps, wide_filters).
  constexpr long weights() const { return 1L * taps * wide_filters(); }
  /// The gradient of the output with the margins that its way back to the input wants: a row, all of it; filters as wide as 4.
  constexpr int gradient_filters() const { return (filters + 3) / 4 * 4; }
  constexpr int gradient_row() const { return (width + kernel - 1) * gradient_filters(); }
  constexpr long gradient() const { return whole(1L * (height + kernel_rows - 1) * gradient_row()); }
  /// The filters (window, gradient_filters, chunk of channels).
  constexpr long turned() const { return 1L * kernel_rows * kernel * gradient_filters() * chunk; }
  /// The gradient of the output without margins (out_pixels, wide_filters), later a chunk of sums a thread; and where each
  /// pixel's window begins in the image.
  constexpr long columns() const {
    const long pixels = 1L * out_pixels * wide_filters();
    return pixels > threads * chunk ? pixels : threads * chunk;
  }
  constexpr long places() const { return whole(out_pixels); }
  /// Pairs of a tap and a chunk of filters, and the threads that share the pixels of each.
  constexpr int units() const { return taps * filter_chunks(); }
  constexpr int lanes() const { return units() < threads ? threads / units() : 1; }
  /// Blocks of images of the filter gradient, and its scratch memory: (blocks, taps, wide_filters).
  static constexpr long blocks(long batch) { return batch < 264 ? batch : 264; }
  constexpr std::size_t scratch_bytes(long batch) const {
    return static_cast<std::size_t>(blocks(batch) * weights()) * sizeof(float);
  }

 private:
  static constexpr long whole(long floats) { return (floats + 3) / 4 * 4; }
};

namespace kernel {

/// What the kernels of few channels share: loads into shared memory by all threads of a block.
struct FewChannelsBlock {
  static constexpr int threads = FewChannels::threads, chunk = FewChannels::chunk;
  using Four = cuda::Pack<float, 4>;
  FewChannels s;

  /// Rows of `inside` values with `before` zeros on the left of each of the `row` values, and rows of zeros above and below.
  template <class Value> SKEIN_HOST_DEVICE static void load_rows(int thread, const Value* from, int rows, int inside, float* to,
                                                                 int all_rows, int above, int row, int before) {
    for (int i = thread; i < all_rows * row; i += threads) {
      const int r = i / row, at = i - r * row - before, of = r - above;
      to[i] = of >= 0 && of < rows && at >= 0 && at < inside ? static_cast<float>(from[of * inside + at]) : 0.0f;
    }
  }
  template <class Value> SKEIN_HOST_DEVICE void load_image(int thread, const Value* x, float* to) const {
    load_rows(thread, x, s.height, s.width * s.channels, to, s.height + 2 * s.margin_rows, s.margin_rows, s.image_row(),
              s.margin * s.channels);
  }
  /// sum += value times 8 weights.
  SKEIN_HOST_DEVICE static void multiply_add(float value, const float* weights, float* sum) {
    const Four low = cuda::load<4>(weights), high = cuda::load<4>(weights + 4);
    for (int k = 0; k < 4; ++k) sum[k] += value * low.value[k];
    for (int k = 0; k < 4; ++k) sum[4 + k] += value * high.value[k];
  }
};

/// y = convolution + bias, rectified where asked for; a block an image.
template <class Value, class Parameter> struct FewChannelsForward : FewChannelsBlock {
  struct Own {};
  const Value* x;
  const Parameter* weight;
  const Parameter* bias;  // null: none
  Value* y;
  bool has_relu;

  SKEIN_HOST_DEVICE int steps() const { return 2; }
  std::size_t shared_bytes() const { return static_cast<std::size_t>(s.image() + s.weights()) * sizeof(float); }
  SKEIN_HOST_DEVICE void operator()(int step, long sample, int thread, Own&, void* shared) const {
    float *weights = static_cast<float*>(shared), *image = weights + s.weights();
    const int wide = s.wide_filters();
    if (step == 0) {
      load_image(thread, x + sample * s.height * s.width * s.channels, image);
      for (int i = thread; i < s.taps * wide; i += threads) {
        const int tap = i / wide, f = i - tap * wide;
        weights[i] = f < s.filters ? static_cast<float>(weight[tap * s.weight_pitch + f]) : 0.0f;
      }
      return;
    }
    const int run = s.kernel * s.channels;
    for (int i = thread; i < s.out_pixels * s.filter_chunks(); i += threads) {
      const int first = i / s.out_pixels * chunk, pixel = i % s.out_pixels, row = pixel / s.out_width;
      float sum[chunk];
      for (int k = 0; k < chunk; ++k) sum[k] = bias && first + k < s.filters ? static_cast<float>(bias[first + k]) : 0.0f;
      const float *from = image + row * s.image_row() + (pixel - row * s.out_width) * s.channels, *w = weights + first;
      for (int ky = 0; ky < s.kernel_rows; ++ky, from += s.image_row())
        for (int at = 0; at < run; ++at, w += wide) multiply_add(from[at], w, sum);
      Value* to = y + (sample * s.out_pixels + pixel) * s.filters + first;
      for (int k = 0; k < chunk; ++k)
        if (first + k < s.filters) to[k] = static_cast<Value>(has_relu && sum[k] < 0 ? 0.0f : sum[k]);  // a NaN stays one
    }
  }
};

/// dx = what the windows that read a pixel have of it; a block an image.
template <class Value, class Parameter> struct FewChannelsInputGradient : FewChannelsBlock {
  struct Own {};
  const Value* dy;
  const Parameter* weight;
  Value* dx;

  SKEIN_HOST_DEVICE int steps() const { return 2; }
  std::size_t shared_bytes() const { return static_cast<std::size_t>(s.gradient() + s.turned()) * sizeof(float); }
  SKEIN_HOST_DEVICE void operator()(int step, long sample, int thread, Own&, void* shared) const {
    float *turned = static_cast<float*>(shared), *gradient = turned + s.turned();
    const int filters = s.gradient_filters();
    if (step == 0) {
      load_gradient(thread, dy + sample * s.out_pixels * s.filters, gradient);
      for (int i = thread; i < s.kernel_rows * s.kernel * filters * chunk; i += threads) {
        const int c = i % chunk, f = i / chunk % filters, tap = i / chunk / filters;
        turned[i] =
            c < s.channels && f < s.filters ? static_cast<float>(weight[(1L * tap * s.channels + c) * s.weight_pitch + f]) : 0.0f;
      }
      return;
    }
    for (int pixel = thread; pixel < s.height * s.width; pixel += threads) {
      const int row = pixel / s.width, column = pixel - row * s.width;
      float sum[chunk] = {};
      const float* w = turned;
      for (int ky = 0; ky < s.kernel_rows; ++ky) {
        const float* from = gradient + (row + s.kernel_rows - 1 - ky) * s.gradient_row() + (column + s.kernel - 1) * filters;
        for (int kx = 0; kx < s.kernel; ++kx, from -= filters)
          for (int f = 0; f < filters; f += 4, w += 4 * chunk) {
            const Four four = cuda::load<4>(from + f);
            for (int k = 0; k < 4; ++k) multiply_add(four.value[k], w + k * chunk, sum);
          }
      }
      Value* to = dx + (sample * s.height * s.width + pixel) * s.channels;
      for (int c = 0; c < chunk; ++c)
        if (c < s.channels) to[c] = static_cast<Value>(sum[c]);
    }
  }

 private:
  SKEIN_HOST_DEVICE void load_gradient(int thread, const Value* from, float* to) const {
    const int filters = s.gradient_filters(), row = s.gradient_row(), above = s.kernel_rows - 1 - s.margin_rows,
              before = s.kernel - 1 - s.margin, rows = s.out_pixels / s.out_width;
    for (int i = thread; i < (s.height + s.kernel_rows - 1) * row; i += threads) {
      const int r = i / row, pixel = (i - r * row) / filters, f = i - r * row - pixel * filters;
      const int of = r - above, column = pixel - before;
      to[i] = of >= 0 && of < rows && column >= 0 && column < s.out_width && f < s.filters
                  ? static_cast<float>(from[(of * s.out_width + column) * s.filters + f])
                  : 0.0f;
    }
  }
};

/// The filter gradients of blocks of images; a thread has up to 4 pairs of a tap and 8 filters, or shares one pair's pixels.
template <class Value> struct FewChannelsFilterGradient : FewChannelsBlock {
  static constexpr int most = FewChannels::units_of_thread;
  struct Own {
    float sum[most][chunk] = {};
  };
  long batch, blocks;
  const Value* x;
  const Value* dy;
  float* partial;  // (blocks, taps, wide_filters)

  /// Two for each image of the largest block, and one for the sums over lanes.
  SKEIN_HOST_DEVICE int steps() const { return static_cast<int>(2 * ((batch + blocks - 1) / blocks) + 1 + (s.lanes() > 1)); }
  std::size_t shared_bytes() const { return static_cast<std::size_t>(s.image() + s.columns() + s.places()) * sizeof(float); }
  SKEIN_HOST_DEVICE void operator()(int step, long block, int thread, Own& own, void* shared) const {
    float *columns = static_cast<float*>(shared), *image = columns + s.columns();
    auto* places = reinterpret_cast<int*>(image + s.image());
    const int last = static_cast<int>(2 * ((batch + blocks - 1) / blocks));
    if (step >= last) return step == last ? keep(block, thread, own, columns) : add_lanes(block, thread, columns);
    const long sample = block + step / 2 * blocks;
    if (sample >= batch) return;
    if (step % 2 == 0) {
      load_image(thread, x + sample * s.height * s.width * s.channels, image);
      const int wide = s.wide_filters();
      const Value* from = dy + sample * s.out_pixels * s.filters;
      for (int i = thread; i < s.out_pixels * wide; i += threads) {
        const int pixel = i / wide, f = i - pixel * wide;
        columns[i] = f < s.filters ? static_cast<float>(from[pixel * s.filters + f]) : 0.0f;
      }
      for (int i = thread; i < s.out_pixels; i += threads)
        places[i] = i / s.out_width * s.image_row() + i % s.out_width * s.channels;
    } else {
      add_image(thread, own, columns, image, places);
    }
  }

 private:
  /// Unit u of a thread: its tap and the first of its filters; lanes of one unit lie next to each other.
  struct Unit {
    int index, lane;
  };
  SKEIN_HOST_DEVICE Unit unit(int thread, int u) const {
    const int at = u * threads + thread, lanes = s.lanes(), index = at / lanes;
    return {index < s.units() && (u == 0 || lanes == 1) ? index : -1, at - index * lanes};
  }
  SKEIN_HOST_DEVICE void add_image(int thread, Own& own, const float* columns, const float* image, const int* places) const {
    const int chunks = s.filter_chunks(), wide = s.wide_filters(), run = s.kernel * s.channels;
    for (int u = 0; u < most; ++u) {
      const Unit of = unit(thread, u);
      if (of.index < 0) continue;
      const int tap = of.index / chunks, ky = tap / run;
      const float *from = image + ky * s.image_row() + (tap - ky * run), *d = columns + of.index % chunks * chunk;
      for (int pixel = of.lane; pixel < s.out_pixels; pixel += s.lanes())
        multiply_add(from[places[pixel]], d + pixel * wide, own.sum[u]);
    }
  }
  /// Without lanes the sums are a block's; with lanes they go to shared memory first.
  SKEIN_HOST_DEVICE void keep(long block, int thread, const Own& own, float* shared) const {
    const bool alone = s.lanes() == 1;
    for (int u = 0; u < most; ++u) {
      const Unit of = unit(thread, u);
      if (of.index < 0) continue;
      float* to = alone ? partial + block * s.weights() + of.index * chunk : shared + thread * chunk;
      for (int k = 0; k < chunk; ++k) to[k] = own.sum[u][k];
    }
  }
  SKEIN_HOST_DEVICE void add_lanes(long block, int thread, const float* shared) const {
    const int lanes = s.lanes();
    for (int i = thread; i < s.units() * chunk; i += threads) {
      const float* from = shared + i / chunk * lanes * chunk + i % chunk;
      float sum = 0;
      for (int lane = 0; lane < lanes; ++lane) sum += from[lane * chunk];
      partial[block * s.weights() + i] = sum;
    }
  }
};

/// dweight += the sums over blocks: the lanes share them.
template <class Parameter> struct AddFewChannelsGradient {
  FewChannels s;
  long blocks;
  const float* partial;
  Parameter* dweight;
  struct Plus {
    constexpr float operator()(float a, float b) const { return a + b; }
  };
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long i, Lanes lanes) const {
    const long tap = i / s.filters, f = i - tap * s.filters;
    const float* from = partial + tap * s.wide_filters() + f;
    float sum = 0;
    for (long b = lanes.index; b < blocks; b += Lanes::count) sum += from[b * s.weights()];
    sum = lanes.reduce(sum, Plus{});
    if (lanes.index == 0) dweight[tap * s.weight_pitch + f] += static_cast<Parameter>(sum);
  }
};

}  // namespace kernel

}  // namespace skein::inline SKEIN_ABI::ops
