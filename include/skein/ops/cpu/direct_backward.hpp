// SPDX-License-Identifier: Apache-2.0
// Backward passes of a direct convolution: they loop over the outputs *behind* the pooling. After a 2 x 2 maximum three quarters
// of the convolution's gradient are zero; the winner's place says which patch of the input an output saw, so that
//     weights:  gradient[filter][patch] += dz * x[patch]          (a row of a patch is contiguous in NHWC)
//     data:     dx[patch] += sum over the filters that won at this place of dz * weight[filter][patch]
// and an output that ReLU has switched off costs nothing. Without pooling each output's place is its own.
//
//     P the plan, c the call; x an image (height, width, channels), dx its gradient, dz (pixels, filters) the gradient of the
//     outputs that a ReLU let pass, w weights; f a filter, ky a row of the window, k a value of it, q a place of the pooling's
//     window, v a vector of a patch's row; R, W rows and vectors of a part of a patch; V a vector of Scalar
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "byte_words.hpp"
#include "dense_backward.hpp"
#include "patch_parts.hpp"

#if SKEIN_WITH_XSIMD
SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// ByChannel: winners lie in a plane for each filter (P.winner_plane()), else by pixel.
template <class Scalar, DirectPlan P, bool ByChannel> struct DirectBackward {
  static constexpr int filters = P.conv().filters, kernel = P.conv().kernel;
  static constexpr int lanes = best_lanes<Scalar>(P.row_values()), vectors = (P.row_values() + lanes - 1) / lanes;
  static constexpr int rows = P.g.out_height(), columns = P.g.out_width();
  static constexpr long pixels = P.g.pixels(), pitch = P.row_values_pitch();
  static constexpr long filter_pitch = kernel * pitch;
  using V = Vector<Scalar, lanes>;
  using Dense = DenseWeights<Scalar, P>;
  using Turned = std::conditional_t<(P.conv().stride > 1), StridedData<Scalar, P>, DenseData<Scalar, P>>;

  /// (filters, kernel, row_values_pitch): what both gradients use; the gaps are zero. Or turned, where dx is a convolution.
  static void flip(const Scalar* weight, Scalar* to) {
    if constexpr (Turned::possible()) return Turned::turn(weight, to);
    for (int f = 0; f < filters; ++f)
      for (int ky = 0; ky < kernel; ++ky)
        for (int k = 0; k < pitch; ++k)
          to[f * filter_pitch + ky * pitch + k] =
              k < P.row_values() ? weight[(1L * ky * P.row_values() + k) * P.conv().weight_pitch() + f] : Scalar(0);
  }

  /// winners: (batch, P.winner_bytes()), null where nothing pools. c.y is read where there is ReLU. make(n, to), where it is
  /// given, writes image n's gradient of the convolution's output. What is null, dweight, dbias or dx, is left out.
  template <class Make> static void run(const Conv2dCall<Scalar>& c, const Scalar* flipped, const ArgMax* winners, Make make) {
    constexpr int group = P.group();
    constexpr bool made = !std::is_same_v<Make, NothingMade>, copies = !Dense::possible || P.pads_backward();
    constexpr long dz_pitch = P.g.relu || made ? P.masked() : P.g.out_count();
    Scalar *const images = c.workspace, *const masked = c.workspace + P.masked_at();
    [[maybe_unused]] Scalar* dweight = c.workspace + P.dweight_at();
    if constexpr (copies) std::memset(images, 0, group * P.padded_image() * sizeof(Scalar));
    if constexpr (!Dense::possible) std::memset(dweight, 0, P.flipped() * sizeof(Scalar));
    Scalar bias[repeats * filters] = {};
    [[maybe_unused]] Scalar* zeros = c.workspace + P.zeros_at();
    if constexpr (Turned::possible()) std::memset(zeros, 0, (whole_line(P.conv().channels) + 16) * sizeof(Scalar));
    for (long n = 0; n < c.batch; n += group) {
      const int count = static_cast<int>(c.batch - n < group ? c.batch - n : group);
      const Scalar* dz = P.g.relu || made ? masked : c.dy + n * P.g.out_count();
      for (int i = 0; i < count; ++i) {
        if constexpr (copies)
          if (c.dweight) take(c.x + (n + i) * P.conv().in_count(), images + i * P.padded_image());
        if constexpr (made) make(n + i, masked + i * P.masked());
        else if (P.g.relu) mask(c.y + (n + i) * P.g.out_count(), c.dy + (n + i) * P.g.out_count(), masked + i * P.masked());
        if (c.dbias) add_pixels(dz + i * dz_pitch, bias);
      }
      const ArgMax* places = winners ? winners + n * P.winner_bytes() : nullptr;
      if constexpr (Dense::possible) {
        for (int i = 0; i < count && c.dweight; ++i)
          Dense::add(copies ? images + i * P.padded_image() : c.x + (n + i) * P.conv().in_count(), dz + i * dz_pitch, c.dweight);
      } else if (c.dweight) {
        Parts::each([&]<int R, int W>(Size<R>, Size<W>, int row, int v) {
          weights<R, W>(images, dz, dz_pitch, places, count, row, v, dweight);
        });
      }
      if (!c.dx) continue;
      for (int i = 0; i < count; ++i) {
        Scalar* dx = c.dx + (n + i) * P.conv().in_count();
        if constexpr (Turned::possible())
          Turned::image(dz + i * dz_pitch, flipped, zeros, dx, c.workspace + P.transposed_at(), c.adds_dx);
        else data(dz + i * dz_pitch, places + i * P.winner_bytes(), flipped, c.workspace, dx, c.adds_dx);
      }
    }
    add_sums(c, bias, dweight);
  }

 private:
  using Parts = PatchParts<kernel, vectors>;
  template <int N> using Size = typename Parts::template Size<N>;
  static constexpr long pixel_step = 1L * P.g.pool_stride * P.conv().stride * P.conv().channels;
  static constexpr long row_step = 1L * P.g.pool_stride * P.conv().stride * P.padded_row();
  static constexpr long origin = -1L * P.g.pool_padding * P.conv().stride * (P.padded_row() + P.conv().channels);

  /// Offset of the patch that the winner at a place of the window saw.
  static constexpr std::array<int, 256> offsets() {
    std::array<int, 256> o{};
    for (int q = 0; q < P.windows(); ++q)
      o[static_cast<std::size_t>(q)] =
          static_cast<int>(P.conv().stride * (q / P.g.pool_kernel * P.padded_row() + q % P.g.pool_kernel * P.conv().channels));
    return o;
  }
  static constexpr std::array<int, 256> offset = offsets();

  /// What run() has summed: bias, `repeats` times the filters, and dweight as flip() makes it.
  static SKEIN_ALWAYS_INLINE void add_sums(const Conv2dCall<Scalar>& c, const Scalar* bias, [[maybe_unused]] Scalar* dweight) {
    for (int f = 0; f < filters; ++f) {
      for (int r = 0; c.dbias && r < repeats; ++r) c.dbias[f] += bias[r * filters + f];
      if (Dense::possible || !c.dweight) continue;
      for (int ky = 0; ky < kernel; ++ky)
        for (int k = 0; k < P.row_values(); ++k)
          c.dweight[(1L * ky * P.row_values() + k) * P.conv().weight_pitch() + f] += dweight[f * filter_pitch + ky * pitch + k];
    }
  }
  static void take(const Scalar* x, Scalar* to) {
    constexpr long n = 1L * P.conv().width * P.conv().channels;
    if constexpr (P.conv().padding == 0) {
      std::memcpy(to, x, P.conv().in_count() * sizeof(Scalar));
    } else {
      to += P.conv().padding * (P.padded_row() + P.conv().channels);
      for (int r = 0; r < P.conv().height; ++r) std::memcpy(to + r * P.padded_row(), x + r * n, n * sizeof(Scalar));
    }
  }
  static SKEIN_NOINLINE void mask(const Scalar* y, const Scalar* dy, Scalar* to) {
    constexpr int wide = widest_lanes<Scalar>;
    using Wide = Vector<Scalar, wide>;
    constexpr long n = P.g.out_count(), whole = n / wide * wide;
    for (long i = 0; i < whole; i += wide) {
      const Wide zero(Scalar(0));
      store_to(to + i, xsimd::select(load_from<Wide>(y + i) > zero, load_from<Wide>(dy + i), zero));
    }
    for (long i = whole; i < n; ++i) to[i] = y[i] > 0 ? dy[i] : Scalar(0);
  }

  /// Sums over the pixels, `repeats` pixels side by side.
  static constexpr int repeats = filters < 64 ? 64 / filters : 1;
  static SKEIN_NOINLINE void add_pixels(const Scalar* dz, Scalar* sums) {
    constexpr long width = repeats * filters, n = pixels * filters;
    for (long i = 0; i < n / width; ++i)
      for (long k = 0; k < width; ++k) sums[k] += dz[i * width + k];
    constexpr long tail = n % width;
    for (long k = 0; k < tail; ++k) sums[k] += dz[n - tail + k];
  }

  /// Where, from the patch at `origin`, the patch lies that an output's gradient is multiplied with. Of an output that nobody won
  /// the gradient is 0; its window may begin in the pooling's padding, which is no memory: the first place of the image.
  static SKEIN_ALWAYS_INLINE long place([[maybe_unused]] const ArgMax* winners, [[maybe_unused]] int f, int row, int column) {
    const long window = row * row_step + column * pixel_step;
    if constexpr (!P.g.pooled()) return window;
    const long pixel = 1L * row * columns + column;
    const ArgMax winner = ByChannel ? winners[f * P.winner_plane() + pixel] : winners[pixel * filters + f];
    return P.g.relu && P.g.pool_padding > 0 && winner == no_winner ? -origin : window + offset[winner];
  }

  template <int R, int W> static SKEIN_NOINLINE void weights(const Scalar* images, const Scalar* dz, long dz_pitch,
                                                             const ArgMax* winners, int count, int row, int v, Scalar* dweight) {
    constexpr int sets = R * W >= 8 ? 1 : R * W >= 4 ? 2 : accumulators >= 24 ? 4 : 2;  // enough independent sums
    const Scalar* first = images + origin + row * P.padded_row() + v * lanes;
    for (int f = 0; f < filters; ++f) {
      Scalar* to = dweight + f * filter_pitch + row * pitch + v * lanes;
      V sum[sets][R * W];
#pragma GCC unroll 32
      for (int i = 0; i < R * W; ++i) {
        sum[0][i] = load_from<V>(to + i / W * pitch + i % W * lanes);
#pragma GCC unroll 4
        for (int s = 1; s < sets; ++s) sum[s][i] = V(Scalar(0));
      }
      for (int n = 0; n < count; ++n) {
        const Scalar* gradient = dz + n * dz_pitch + f;
        const ArgMax* places = winners + n * P.winner_bytes();
        const Scalar* image = first + n * P.padded_image();
        for (int r = 0; r < rows; ++r) {
          int column = 0;
          for (; column + sets <= columns; column += sets) {
#pragma GCC unroll 4
            for (int s = 0; s < sets; ++s)
              add<R, W>(sum[s], gradient[(1L * r * columns + column + s) * filters], image + place(places, f, r, column + s));
          }
          for (; sets > 1 && column < columns; ++column)
            add<R, W>(sum[0], gradient[(1L * r * columns + column) * filters], image + place(places, f, r, column));
        }
      }
#pragma GCC unroll 32
      for (int i = 0; i < R * W; ++i) {
#pragma GCC unroll 4
        for (int s = 1; s < sets; ++s) sum[0][i] += sum[s][i];
        store_to(to + i / W * pitch + i % W * lanes, sum[0][i]);
      }
    }
  }
  template <int R, int W> static SKEIN_ALWAYS_INLINE void add(V (&sum)[R * W], Scalar gradient, const Scalar* x) {
    const V dz(gradient);
#pragma GCC unroll 32
    for (int i = 0; i < R * W; ++i) sum[i] = fused(dz, load_from<V>(x + i / W * P.padded_row() + i % W * lanes), sum[i]);
  }

  /// dx of one image, written or added to.
  static void data(const Scalar* dz, const ArgMax* winners, const Scalar* flipped, Scalar* workspace, Scalar* dx, bool adds) {
    Scalar* padded = workspace + P.dx_at();
    std::memset(padded, 0, P.padded_image() * sizeof(Scalar));
    const ArgMax* alive = winners;
    if constexpr (!P.g.pooled() && P.g.relu) {
      ArgMax* bytes = reinterpret_cast<ArgMax*>(workspace + P.alive_at());
      for (long i = 0; i < P.g.out_count(); ++i) bytes[i] = dz[i] != 0 ? ArgMax(0) : no_winner;
      alive = bytes;
    }
    Parts::each([&]<int R, int W>(Size<R>, Size<W>, int row, int v) {
      Scalar* to = padded + origin + row * P.padded_row() + v * lanes;
      const Scalar* w = flipped + row * pitch + v * lanes;
      if constexpr (ByChannel) by_channel<R, W>(dz, alive, w, to);
      else by_pixel<R, W>(dz, alive, w, to);
    });
    constexpr long n = 1L * P.conv().width * P.conv().channels;
    const Scalar* from = padded + P.conv().padding * (P.padded_row() + P.conv().channels);
    for (int r = 0; r < P.conv().height; ++r) {
      const Scalar* row = from + r * P.padded_row();
      if (!adds) std::memcpy(dx + r * n, row, n * sizeof(Scalar));
      else
        for (long i = 0; i < n; ++i) dx[r * n + i] += row[i];
    }
  }
  template <int R, int W>
  static SKEIN_NOINLINE void by_channel(const Scalar* dz, const ArgMax* winners, const Scalar* w, Scalar* dx) {
    for (int f = 0; f < filters; ++f) {
      V weight[R * W];
#pragma GCC unroll 32
      for (int i = 0; i < R * W; ++i) weight[i] = load_from<V>(w + f * filter_pitch + i / W * pitch + i % W * lanes);
      for (int r = 0; r < rows; ++r)
        for (int column = 0; column < columns; ++column) {
          const long pixel = 1L * r * columns + column;
          const V gradient(dz[pixel * filters + f]);
          Scalar* to = dx + place(winners, f, r, column);
#pragma GCC unroll 32
          for (int i = 0; i < R * W; ++i) {
            Scalar* at = to + i / W * P.padded_row() + i % W * lanes;
            store_to(at, fused(gradient, weight[i], load_from<V>(at)));
          }
        }
    }
  }

  static constexpr int words = (filters + 7) / 8;
  static constexpr bool all_alive = !P.g.pooled() && !P.g.relu;
  /// Eight winners as bytes of a word; behind the last filter, bytes that are no place.
  static SKEIN_ALWAYS_INLINE std::uint64_t eight(const ArgMax* from, int word) {
    return word_of_bytes(from + 8 * word, filters % 8 != 0 && word == words - 1 ? filters % 8 : 8);
  }
  template <int R, int W>
  static SKEIN_NOINLINE void by_pixel(const Scalar* dz, const ArgMax* winners, const Scalar* w, Scalar* dx) {
    for (int r = 0; r < rows; ++r)
      for (int column = 0; column < columns; ++column, dz += filters, winners += all_alive ? 0 : filters) {  // none: null
        Scalar* to = dx + r * row_step + column * pixel_step;
        for (int q = 0; q < P.windows(); ++q) {
          std::uint64_t hit[words], any = 0;
          for (int i = 0; !all_alive && i < words; ++i) any |= hit[i] = equal_bytes(eight(winners, i), q);
          if (!all_alive && any == 0) continue;
          V sum[R * W];
#pragma GCC unroll 32
          for (int i = 0; i < R * W; ++i) sum[i] = V(Scalar(0));
          if constexpr (all_alive) {
            for (int f = 0; f < filters; ++f) add_filter<R, W>(sum, dz[f], w + f * filter_pitch);
          } else {
            for (int i = 0; i < words; ++i)
              for (std::uint64_t left = hit[i]; left != 0; left &= left - 1) {
                const int f = 8 * i + std::countr_zero(left) / 8;
                add_filter<R, W>(sum, dz[f], w + f * filter_pitch);
              }
          }
          Scalar* patch = to + offset[static_cast<std::size_t>(q)];
#pragma GCC unroll 32
          for (int i = 0; i < R * W; ++i) {
            Scalar* at = patch + i / W * P.padded_row() + i % W * lanes;
            store_to(at, load_from<V>(at) + sum[i]);
          }
        }
      }
  }
  template <int R, int W> static SKEIN_ALWAYS_INLINE void add_filter(V (&sum)[R * W], Scalar gradient, const Scalar* w) {
    const V dz(gradient);
#pragma GCC unroll 32
    for (int i = 0; i < R * W; ++i) sum[i] = fused(dz, load_from<V>(w + i / W * pitch + i % W * lanes), sum[i]);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
