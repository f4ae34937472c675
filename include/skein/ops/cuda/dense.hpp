// SPDX-License-Identifier: Apache-2.0
// y = x W + b and its gradients on the GPU: products by cuBLASLt, which adds the bias, applies ReLU or GELU and sums the gradient
// of the bias in the product's kernel where it can; what it cannot is one own kernel behind it. Samples and weights may be bf16
// or fp16: sums are float's then, and so are the gradients of the weights.
//
//     x (batch, In), w (In, Out), y (batch, Out); dx, dw, dy the gradients; p a product, g arguments
#pragma once
#include <type_traits>

#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../dense.hpp"
#include "chain.hpp"
#include "gemm.hpp"
#include "pack.hpp"
#include "product.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <class Sample> inline constexpr bool dense_computes_in<Cuda, Sample> = is_half<Sample>;

namespace cublas {
/// The activations that a product's kernel knows. Specialise activation_of for a Finish that computes just that function; `gelu`
/// is the form with tanh.
enum class Activation { other, keep, relu, gelu };
template <class Finish> inline constexpr Activation activation_of = Activation::other;
template <> inline constexpr Activation activation_of<Keep> = Activation::keep;

/// The epilogue of a product that applies this activation, with a bias or without; `none` where the library has no such one.
constexpr Epilogue epilogue_of(Activation a, bool bias) {
  switch (a) {
    case Activation::relu:
      return bias ? Epilogue::relu_bias : Epilogue::relu;
    case Activation::gelu:
      return bias ? Epilogue::gelu_bias : Epilogue::gelu;
    case Activation::keep:
      return bias ? Epilogue::bias : Epilogue::none;
    case Activation::other:
      break;
  }
  return Epilogue::none;
}
}  // namespace cublas

namespace kernel {
/// y = Finish(from + bias) over rows of N values, Width of them an index.
template <int N, class Finish, class Sample, int Width> struct FinishRows {
  const Sample* from;
  const Sample* bias;
  Sample* y;
  constexpr void operator()(long i) const {
    constexpr long packs = N / Width;
    const long row = i / packs, column = (i - row * packs) * Width, at = row * row_pitch(N) + column;
    auto p = cuda::load<Width>(from + at);
    cuda::Pack<Sample, Width> b = {};
    if (bias) b = cuda::load<Width>(bias + column);
    for (int k = 0; k < Width; ++k) {
      Wide<Sample> v = static_cast<Wide<Sample>>(p.value[k]);
      if (bias) v += static_cast<Wide<Sample>>(b.value[k]);
      p.value[k] = static_cast<Sample>(Finish{}(v));
    }
    cuda::store(y + at, p);
  }
};

}  // namespace kernel

/// Scalar is the type of the weights' gradients; Sample that of x, w, bias, y and dy: Scalar itself, or bf16 or fp16 beside
/// float.
template <class Scalar, int In, int Out> struct Dense<Cuda, Scalar, In, Out> {
  static constexpr long x_pitch = row_pitch(In), pitch = row_pitch(Out);
  DenseOptions options;

  constexpr explicit Dense(DenseOptions o = {}) : options(o) {}
  static constexpr std::string_view kernel() { return "cuBLASLt"; }

  template <class Finish, class Sample>
  void forward(long batch, const Sample* x, const Sample* w, const void*, const Sample* bias, Sample* y) const {
    if (batch <= 0) return;
    cublas::Product p = output(batch, x, w, y);
    if (with_epilogue<Sample>(p, cublas::epilogue_of(in_product<Finish, Sample>(), bias), bias) && cublas::multiply(p)) return;
    p = output(batch, x, w, y);
    cublas::multiply(p);
    if (bias || cublas::activation_of<Finish> != cublas::Activation::keep) finish<Finish>(batch, y, bias, y);
  }
  /// Runs forward(), and writes what goes into Finish to `before`: (batch, row_pitch(Out)).
  template <class Finish, class Sample>
  void forward_keeping(long batch, const Sample* x, const Sample* w, const Sample* bias, Sample* before, Sample* y) const {
    if (batch <= 0) return;
    if (keeps<Finish, Sample>()) {
      cublas::Product p = output(batch, x, w, y);
      p.aux = before;
      if (with_epilogue<Sample>(p, keeping(bias), bias) && cublas::multiply(p)) return;
    }
    forward<Keep>(batch, x, w, nullptr, bias, before);
    finish<Finish>(batch, before, static_cast<const Sample*>(nullptr), y);
  }
  template <class Sample>
  void input_gradient(long batch, const Sample* dy, const Sample* w, const void*, void*, Sample* dx) const {
    if (batch > 0) cublas::multiply(input(batch, dy, w, dx));
  }
  template <class Sample> void gradients(const DenseGradients<Scalar, Sample>& g, Share = {}) const {
    if (g.batch <= 0) {
      if (g.accumulate) return;
      skein::cuda::for_each(1L * In * Out, kernel::ScaleRows<Scalar>{g.dw, Out, pitch, Scalar(0)});
      if (g.db) skein::cuda::for_each(long(Out), kernel::ScaleRows<Scalar>{g.db, Out, pitch, Scalar(0)});
      return;
    }
    cublas::Product p = weight(g.batch, g.x, g.dy, g.dw, g.accumulate);
    if (g.db && !g.accumulate && with_epilogue<Sample>(p, cublas::Epilogue::sums, g.db) && cublas::multiply(p)) return;
    p = weight(g.batch, g.x, g.dy, g.dw, g.accumulate);
    cublas::multiply(p);
    if (g.db) ChainKernels<Cuda>::column_sums<Out, Sample>(g.batch, kernel::AsItIs<Sample>{g.dy}, g.db, g.accumulate);
  }
  static void pack_weights(long, long, const void*, void*) {}

  /// The plans and the workspace of all that may follow with this batch; pointers as in the calls. db null: its sums come by
  /// chain_and_sum.
  template <class Finish, class Sample>
  void prepare(long batch, const Sample* w, const Sample* bias, Scalar* dw, Scalar* db) const {
    if (batch <= 0) return;
    Sample* const none = nullptr;
    cublas::Product p;
    const auto prepare_output = [&](cublas::Epilogue epilogue) {
      p = output(batch, none, w, none);
      if (!with_epilogue<Sample>(p, epilogue, bias) || !cublas::prepare(p)) cublas::prepare(output(batch, none, w, none));
    };
    prepare_output(cublas::epilogue_of(in_product<Finish, Sample>(), bias));
    if (keeps<Finish, Sample>()) prepare_output(keeping(bias));
    if constexpr (cublas::activation_of<Finish> == cublas::Activation::gelu)  // forward_keeping, GELU in a kernel behind
      prepare_output(cublas::epilogue_of(cublas::Activation::keep, bias));
    cublas::prepare(input(batch, none, w, none));
    cublas::prepare(weight(batch, none, none, dw, true));
    p = weight(batch, none, none, dw, false);
    if (db && with_epilogue<Sample>(p, cublas::Epilogue::sums, db)) cublas::prepare(p);
    skein::cuda::workspace().reserve(chain_workspace<Sample>(batch, Out));
  }

 private:
  static_assert(std::is_floating_point_v<Scalar>);

  /// The activation that the product's kernel applies. cuBLASLt does not say how far its tanh is from tanh, and backward takes
  /// the slope of the exact one: strict floats have GELU by a kernel of our own, TF32 and 16 bits round more than that anyway.
  template <class Finish, class Sample> cublas::Activation in_product() const {
    constexpr cublas::Activation known = cublas::activation_of<Finish>;
    const bool strict = std::is_same_v<Sample, float> && !options.tf32;
    return known == cublas::Activation::gelu && strict ? cublas::Activation::other : known;
  }
  template <class Finish, class Sample> bool keeps() const {
    return pitch % 8 == 0 && !std::is_same_v<Sample, double> && in_product<Finish, Sample>() == cublas::Activation::gelu;
  }
  static cublas::Epilogue keeping(const void* bias) {
    return bias ? cublas::Epilogue::gelu_aux_bias : cublas::Epilogue::gelu_aux;
  }

  /// Puts an epilogue on the product; false: there is none for doubles, or for a vector that is not 16-byte aligned.
  template <class Sample> static bool with_epilogue(cublas::Product& p, cublas::Epilogue epilogue, const void* vector) {
    if (epilogue == cublas::Epilogue::none || std::is_same_v<Sample, double> || cublas::detail::alignment(vector) < 16)
      return false;
    p.epilogue = epilogue;
    p.vector = const_cast<void*>(vector);
    return true;
  }
  template <class Sample> cublas::Product of(cudaDataType_t result) const {
    static_assert(std::is_same_v<Sample, Scalar> || (is_half<Sample> && std::is_same_v<Scalar, float>));
    cublas::Product p;
    p.most_alignment = 16;  // what prepare() can promise for samples
    p.type = cublas::type_of<Sample>;
    p.result = result;
    p.tf32 = options.tf32 && std::is_same_v<Sample, float>;
    return p;
  }
  template <class Sample> cublas::Product output(long batch, const Sample* x, const Sample* w, Sample* y) const {
    cublas::Product p = of<Sample>(cublas::type_of<Sample>);
    p.m = batch, p.n = Out, p.k = In;
    p.a = x, p.b = w, p.d = y;
    p.lda = x_pitch, p.ldb = p.ldd = pitch;
    return p;
  }
  template <class Sample> cublas::Product input(long batch, const Sample* dy, const Sample* w, Sample* dx) const {
    cublas::Product p = of<Sample>(cublas::type_of<Sample>);
    p.tb = Transpose::yes;
    p.m = batch, p.n = In, p.k = Out;
    p.a = dy, p.b = w, p.d = dx;
    p.lda = p.ldb = pitch, p.ldd = x_pitch;
    return p;
  }
  template <class Sample>
  cublas::Product weight(long batch, const Sample* x, const Sample* dy, Scalar* dw, bool accumulate) const {
    cublas::Product p = of<Sample>(cublas::type_of<Scalar>);
    p.ta = Transpose::yes;
    p.m = In, p.n = Out, p.k = batch;
    p.a = x, p.b = dy, p.d = dw;
    p.lda = x_pitch, p.ldb = p.ldd = pitch;
    p.beta = accumulate ? 1 : 0;
    return p;
  }
  template <class Finish, class Sample> static void finish(long batch, const Sample* from, const Sample* bias, Sample* y) {
    constexpr int width = cuda::pack_width<Sample>;
    if constexpr (Out % width == 0)
      if (cuda::aligned_16(from, bias, y) && !skein::cuda::plain_kernels())
        return skein::cuda::for_each(batch * (Out / width), kernel::FinishRows<Out, Finish, Sample, width>{from, bias, y});
    skein::cuda::for_each(batch * Out, kernel::FinishRows<Out, Finish, Sample, 1>{from, bias, y});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
