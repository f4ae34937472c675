// SPDX-License-Identifier: Apache-2.0
// Layers as plain loops, for tests of what is around layers: containers, executors, policies. Smooth, so that finite differences
// are exact to rounding.
#pragma once
#include <cmath>
#include <vector>

#include <skein/nn/fusion.hpp>
#include <skein/nn/layer.hpp>

namespace naive {

namespace sk = skein;

/// y = x W + b. `Split`: divides its gradient among workers where it may.
template <int N, bool Split = false> struct Linear {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    const int k = static_cast<int>(in.count());
    return {.output = {1, {N}},
            .parameters = {{{"weight", {2, {k, N}}, sk::Init::fan_in_uniform, k, N},
                            {"bias", {1, {N}}, sk::Init::fan_in_uniform, k, N, false}}},
            .flops = 2L * k * N,
            .saves_input = true,
            .overwrites_gradients = Split,
            .fault = in.rank == 1 ? sk::nn::Fault::none : sk::nn::Fault::wants_flat};
  }
  template <class Device> static constexpr sk::KernelNeeds needs(sk::Extents) { return {.splits_gradients = Split}; }
  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long k = In::count, p = sk::row_pitch(N), xp = sk::sample_pitch(In::extents);
    for (long b = 0; b < f.batch; ++b)
      for (int j = 0; j < N; ++j) {
        auto s = f.parameters[k * p + j];
        for (long i = 0; i < k; ++i) s += f.x[b * xp + i] * f.parameters[i * p + j];
        f.y[b * p + j] = s;
      }
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr long k = In::count, p = sk::row_pitch(N), xp = sk::sample_pitch(In::extents);
    if (f.dx)
      for (long b = 0; b < f.batch; ++b)
        for (long i = 0; i < k; ++i) {
          typename Frame::Scalar s = 0;
          for (int j = 0; j < N; ++j) s += f.dy[b * p + j] * f.parameters[i * p + j];
          f.dx[b * xp + i] = s;
        }
    const auto& c = *f.context;
    if (Split && c.split_gradients()) {
      c.worker.barrier();
      const auto [lo, hi] = c.worker.slice(N);
      add<In>(f, c.whole(f.x, xp), c.whole(f.dy, p), c.total, lo, hi, !c.accumulate);
      c.worker.barrier();
    } else {
      add<In>(f, f.x, f.dy, f.batch, 0, N, Split && !c.accumulate);
    }
  }
  template <class In, class Frame, class T>
  static void add(Frame& f, const T* x, const T* dy, long n, long lo, long hi, bool clear) {
    constexpr long k = In::count, p = sk::row_pitch(N), xp = sk::sample_pitch(In::extents);
    for (long j = lo; j < hi; ++j)
      for (long i = 0; i <= k; ++i) {
        T s = clear ? 0 : f.gradients[i * p + j];
        for (long b = 0; b < n; ++b) s += dy[b * p + j] * (i < k ? x[b * xp + i] : T(1));
        f.gradients[i * p + j] = s;
      }
  }
};

struct Tanh {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in, .saves_output = true}; }
  template <class In, class Frame> static void forward(Frame& f) {
    for (long i = 0; i < f.batch * sk::sample_pitch(In::extents); ++i) f.y[i] = std::tanh(f.x[i]);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (!f.dx) return;
    for (long i = 0; i < f.batch * sk::sample_pitch(In::extents); ++i) f.dx[i] = f.dy[i] * (1 - f.y[i] * f.y[i]);
  }
};

/// (h, w, c) to a row, without a copy where the pitches agree.
struct Flatten {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {.output = {1, {static_cast<int>(in.count())}}, .aliases_input = sk::sample_pitch(in) == sk::row_pitch(in.count())};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    copy<In>(f.y, f.x, f.batch, sk::row_pitch(In::count), sk::sample_pitch(In::extents));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) copy<In>(f.dx, f.dy, f.batch, sk::sample_pitch(In::extents), sk::row_pitch(In::count));
  }
  template <class In, class T> static void copy(T* to, const T* from, long n, long to_pitch, long from_pitch) {
    for (long b = 0; b < n; ++b)
      for (long i = 0; i < In::count; ++i) to[b * to_pitch + i] = from[b * from_pitch + i];
  }
};

/// Subtracts the mean of the batch from each value: couples samples, workers and (with a policy) ranks.
struct Center {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in, .couples_batch = true}; }
  template <class In, class Frame> static void forward(Frame& f) { center<In>(f, f.y, f.x); }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) center<In>(f, f.dx, f.dy);
  }
  template <class In, class Frame, class T> static void center(Frame& f, T* to, const T* from) {
    constexpr long n = In::count, p = sk::sample_pitch(In::extents);
    std::vector<double> sums(n + 1, 0.0);
    for (long b = 0; b < f.batch; ++b)
      for (long i = 0; i < n; ++i) sums[static_cast<std::size_t>(i)] += from[b * p + i];
    sums[n] = static_cast<double>(f.batch);
    f.context->reduce_statistics(sums.data(), n + 1);
    for (long b = 0; b < f.batch; ++b)
      for (long i = 0; i < n; ++i) to[b * p + i] = from[b * p + i] - static_cast<T>(sums[static_cast<std::size_t>(i)] / sums[n]);
  }
};

/// A pair that fuses on Cpu: FusedPair<N> must give what Plain<N>, Squash give.
template <int N> struct Plain : Linear<N> {};
struct Squash : Tanh {};
template <int N> struct FusedPair {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    sk::LayerInfo i = Linear<N>::describe(in);
    i.saved_for_backward = sk::row_pitch(N);  // the masked dy
    i.saves_output = true;
    return i;
  }
  template <class In, class Frame> static void forward(Frame& f) {
    Linear<N>::template forward<In>(f);
    for (long i = 0; i < f.batch * sk::row_pitch(N); ++i) f.y[i] = std::tanh(f.y[i]);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    for (long i = 0; i < f.batch * sk::row_pitch(N); ++i) f.saved_for_backward[i] = f.dy[i] * (1 - f.y[i] * f.y[i]);
    Frame g = f;
    g.dy = f.saved_for_backward;
    Linear<N>::template backward<In>(g);
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return "a loop for both"; }
};

}  // namespace naive

namespace skein::inline SKEIN_ABI::nn {
template <int N> struct Fusion<Cpu, naive::Plain<N>, naive::Squash> { using type = naive::FusedPair<N>; };
}  // namespace skein::inline SKEIN_ABI::nn
