// SPDX-License-Identifier: Apache-2.0
// Layers of a user as tensor expressions, for both devices, and what they are compared with: the same with pointers.
#pragma once
#include <algorithm>
#include <cstdint>

#include <skein/nn/expression_layer.hpp>

namespace own_layers {
namespace sk = skein;
using namespace sk::literals;

/// y = scale * x, with one trained factor a feature.
struct Scale {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
  }
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
    f.dx() = f.dy() * f.parameter("scale"_p);
  }
};

// [quote squash]
/// y = tanh(gain * x + shift + position): parameters of three shapes, a derivative from the output, y written twice.
struct Squash {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in,
            .parameters = {{"gain", {1}, sk::Init::ones}, {"shift", {in.last()}}, {"position", in, sk::Init::zeros, 1, 1, false}},
            .backward_reads = sk::Reads::x_and_y,
            .flops = 4 * in.count()};
  }
  static void forward(auto& f) {
    f.y() = f.parameter("gain"_p) * f.x() + f.parameter("shift"_p);
    f.y() += f.parameter("position"_p);
    f.y() = tanh(f.y());
  }
  static void backward(auto& f) {
    const auto ds = f.dy() * (1 - square(f.y()));
    f.gradient("gain"_p) += sum_all(ds * f.x());
    f.gradient("shift"_p) += sum_leading(ds);
    f.gradient("position"_p) += sum_batch(ds);
    f.dx() = f.parameter("gain"_p) * ds;
  }
};
// [end]

// [quote embedding]
/// A row of a trained table for each token (Bengio et al., 2003): (T) to (T, Width).
template <int Vocabulary, int Width> struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), Width},
            .parameters = {{"table", {Vocabulary, Width}, sk::Init::lecun_normal}},  // N(0, 1)
            .tokens = Vocabulary};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};
// [end]

// [quote padded_embedding]
/// The same where token 0 is no word but fills a short text: its rows are zeros, and its row of the table is not trained.
template <int Vocabulary, int Width> struct PaddedEmbedding : Embedding<Vocabulary, Width> {
  static void forward(auto& f) { f.y() = where(f.tokens() != 0, rows_of(f.parameter("table"_p), f.tokens()), 0); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(where(f.tokens() != 0, f.dy(), 0), f.tokens()); }
};
// [end]

// [quote mean_of_words]
/// The mean of the words' rows of a trained table, where token 0 is no word but fills a short text: (T) to (Width).
template <int Vocabulary, int Width> struct MeanOfWords {
  static constexpr sk::LayerInfo describe(sk::Extents) {
    return {.output = {1, {Width}},
            .parameters = {{{"table", {2, {Vocabulary, Width}}, sk::Init::lecun_normal}}},
            .tokens = Vocabulary};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    std::fill(f.y, f.y + f.batch * sk::sample_pitch({1, {Width}}), 0);  // where the sums begin
    each_word<In>(f, [&](long row, long out, auto share) {
      for (long c = 0; c < Width; ++c) f.y[out + c] += share * f.parameters[row + c];
    });
  }
  template <class In, class Frame> static void backward(Frame& f) {
    each_word<In>(f, [&](long row, long out, auto share) {
      for (long c = 0; c < Width; ++c) f.gradients[row + c] += share * f.dy[out + c];
    });
  }

 private:
  template <class In, class Frame, class Body> static void each_word(const Frame& f, Body body) {
    for (long i = 0; i < f.batch; ++i) {
      const std::int32_t* text = f.tokens + i * In::count;
      const auto words = In::count - std::count(text, text + In::count, 0);
      for (long t = 0; t < In::count; ++t)
        if (text[t] != 0)  // where a word's row is, where the sample's output, its share
          body(text[t] * sk::row_pitch(Width), i * sk::sample_pitch({1, {Width}}), 1 / typename Frame::Scalar(words));
    }
  }
};
// [end]

/// Scale with pointers, in a double loop.
struct ScaleByHand {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {
        .output = in, .parameters = {{{"scale", {1, {in.last()}}, sk::Init::ones}}}, .flops = in.count(), .saves_input = true};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    each<In>(f, [&](long at, long i) { f.y[at] = f.parameters[i] * f.x[at]; });
  }
  template <class In, class Frame> static void backward(Frame& f) {
    each<In>(f, [&](long at, long i) {
      f.gradients[i] += f.dy[at] * f.x[at];
      if (f.dx) f.dx[at] = f.dy[at] * f.parameters[i];
    });
  }

 private:
  template <class In, class Frame, class Body> static void each(const Frame& f, Body body) {
    for (long s = 0; s < f.batch; ++s)
      for (long i = 0; i < In::count; ++i) body(s * sk::sample_pitch(In::extents) + i, i % In::extents.last());
  }
};

}  // namespace own_layers
