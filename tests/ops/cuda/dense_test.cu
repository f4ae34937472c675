// SPDX-License-Identifier: Apache-2.0
// y = x W + b and its gradients on the GPU against loops in double: tiny, odd, padded and large layers, batches of 0, 1 and odd
// sizes, every finish, accumulation, vectors that are not aligned, samples of 16 bits.
#include <skein/nn/cuda/linear.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/sigmoid.hpp>

#include "../../support/close.hpp"
#include "../../support/on_device.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace ops = skein::ops;
using support::OnDevice;

namespace {

using Relu = nn::detail::Value<nn::ReluFunction>;
using TanhGelu = nn::detail::Value<nn::GeluFunction<nn::TanhForm>>;
using ErfGelu = nn::detail::Value<nn::GeluFunction<>>;
using Sigmoid = nn::detail::Value<nn::SigmoidFunction>;

template <class T> T nan() { return T(std::numeric_limits<float>::quiet_NaN()); }
double value_of(float v) { return static_cast<double>(v); }
double value_of(double v) { return v; }
double value_of(sk::bf16 v) { return static_cast<double>(static_cast<float>(v)); }
double value_of(sk::fp16 v) { return static_cast<double>(static_cast<float>(v)); }

/// Rows of n values, row_pitch apart, with `gap` behind them; `offset` scalars before.
template <class T> std::vector<T> rows(long count, long n, double step, T gap, long offset = 0) {
  const long pitch = sk::row_pitch(n);
  std::vector<T> v(static_cast<std::size_t>(offset + count * pitch), gap);
  for (long r = 0; r < count; ++r)
    for (long j = 0; j < n; ++j)
      v[static_cast<std::size_t>(offset + r * pitch + j)] = T(std::sin(step * static_cast<double>(r * n + j + 1)));
  return v;
}

template <class T> bool near(T got, double want, double terms) {
  if constexpr (sk::is_half<T>) {
    const double g = value_of(got), unit = static_cast<double>(static_cast<float>(std::numeric_limits<T>::epsilon()));
    return std::abs(g - want) <= unit * (std::abs(want) + 1) + 1e-6 * terms;  // the product may be rounded before the bias
  } else {
    return support::close(got, static_cast<T>(want), support::Roundings::arithmetic, terms);
  }
}

struct Case {
  long batch = 5;
  bool bias = true, accumulate = false;
  long offset = 0;  ///< of weight and bias, in scalars
};

/// Everything that Dense does, for samples of type T and gradients of type G.
template <int In, int Out, class Finish, class T, class G = T> void check(const Case& c) {
  constexpr long ip = sk::row_pitch(In), op = sk::row_pitch(Out);
  const auto x = rows<T>(c.batch, In, 0.7, nan<T>()), dy = rows<T>(c.batch, Out, 1.3, nan<T>());
  const auto w = rows<T>(In, Out, 0.9, T(0), c.offset), bias = rows<T>(1, Out, 0.4, T(0), c.offset);
  OnDevice<T> X(x), DY(dy), W(w), B(bias), Y(c.batch * op, nan<T>()), DX(c.batch * ip, nan<T>()), Before(c.batch * op, nan<T>());
  OnDevice<T> Y2(c.batch * op, nan<T>());
  std::vector<G> start = rows<G>(In + 1, Out, 0.2, G(0));  // dw, then db
  if (!c.accumulate)
    for (long r = 0; r <= In; ++r)
      for (long j = 0; j < Out; ++j) start[static_cast<std::size_t>(r * op + j)] = nan<G>();
  OnDevice<G> D(start);
  const ops::Dense<sk::Cuda, G, In, Out> dense;
  const T* const b = c.bias ? B.data() + c.offset : nullptr;
  const T* const weight = W.data() + c.offset;
  G* const db = c.bias ? D.data() + In * op : nullptr;
  dense.template prepare<Finish>(c.batch, weight, b, D.data(), db);
  dense.template forward<Finish>(c.batch, X.data(), weight, nullptr, b, Y.data());
  dense.template forward_keeping<Finish>(c.batch, X.data(), weight, b, Before.data(), Y2.data());
  dense.input_gradient(c.batch, DY.data(), weight, nullptr, nullptr, DX.data());
  dense.gradients(ops::DenseGradients<G, T>{
      .batch = c.batch, .x = X.data(), .dy = DY.data(), .dw = D.data(), .db = db, .accumulate = c.accumulate});

  const auto y = Y.values(), y2 = Y2.values(), dx = DX.values(), before = Before.values();
  const auto d = D.values();
  const auto at = [](const auto& v, long i) { return value_of(v[static_cast<std::size_t>(i)]); };
  long wrong_y = 0, wrong_kept = 0, wrong_dx = 0, wrong_dw = 0, wrong_db = 0, gaps = 0;
  for (long n = 0; n < c.batch; ++n) {
    for (long j = 0; j < Out; ++j) {
      double sum = c.bias ? at(bias, c.offset + j) : 0;
      for (long i = 0; i < In; ++i) sum += at(x, n * ip + i) * at(w, c.offset + i * op + j);
      const double want = Finish{}(sum);
      const double terms = In + 1.0;
      wrong_y += !near(y[static_cast<std::size_t>(n * op + j)], want, terms);
      // of 16 bits: the activation may see what was rounded when it was kept
      const bool half = sk::is_half<T>;
      wrong_kept += !near(before[static_cast<std::size_t>(n * op + j)], sum, terms);
      wrong_kept += half ? std::abs(at(y2, n * op + j) - want) > 0.02 * (1 + std::abs(want))
                         : !near(y2[static_cast<std::size_t>(n * op + j)], want, terms);
    }
    for (long i = 0; i < In; ++i) {
      double sum = 0;
      for (long j = 0; j < Out; ++j) sum += at(dy, n * op + j) * at(w, c.offset + i * op + j);
      wrong_dx += !near(dx[static_cast<std::size_t>(n * ip + i)], sum, Out);
    }
  }
  for (long r = 0; r <= In; ++r)
    for (long j = 0; j < op; ++j) {
      const std::size_t k = static_cast<std::size_t>(r * op + j);
      if (j >= Out) {
        gaps += !(d[k] == G(0));
        continue;
      }
      if (r == In && !c.bias) continue;
      double sum = c.accumulate ? static_cast<double>(start[k]) : 0;
      for (long n = 0; n < c.batch; ++n) sum += (r < In ? at(x, n * ip + r) : 1.0) * at(dy, n * op + j);
      (r < In ? wrong_dw : wrong_db) += !near(d[k], sum, static_cast<double>(c.batch) + 1);
    }
  INFO("in " << In << " out " << Out << " batch " << c.batch << " bias " << c.bias << " accumulate " << c.accumulate << " offset "
             << c.offset);
  CHECK(wrong_y == 0);
  CHECK(wrong_kept == 0);
  CHECK(wrong_dx == 0);
  CHECK(wrong_dw == 0);
  CHECK(wrong_db == 0);
  CHECK(gaps == 0);
}
template <int In, int Out, class Finish, class T, class G = T> void cases() {
  for (long batch : {0L, 1L, 5L, 130L})
    for (bool accumulate : {false, true}) check<In, Out, Finish, T, G>({.batch = batch, .accumulate = accumulate});
  check<In, Out, Finish, T, G>({.batch = 3, .bias = false});
  check<In, Out, Finish, T, G>({.batch = 3, .offset = 1});
}

}  // namespace

TEST_CASE("Dense on Cuda: float layers of all sizes agree with plain loops", "[dense]") {
  cases<1, 1, ops::Keep, float>();
  cases<3, 10, ops::Keep, float>();
  cases<17, 3, ops::Keep, float>();
  cases<84, 10, ops::Keep, float>();
  cases<16, 120, ops::Keep, float>();
  check<512, 513, ops::Keep, float>({.batch = 7});
  check<9, 512, ops::Keep, float>({.batch = 1000, .accumulate = true});  // sums in blocks of rows
}
TEST_CASE("Dense on Cuda: every finish", "[dense]") {
  cases<17, 10, Relu, float>();
  cases<17, 10, TanhGelu, float>();
  cases<17, 3, TanhGelu, float>();
  cases<17, 10, ErfGelu, float>();
  cases<17, 10, Sigmoid, float>();
}
TEST_CASE("Dense on Cuda: doubles", "[dense]") {
  cases<17, 10, ops::Keep, double>();
  cases<8, 3, Relu, double>();
  cases<8, 16, TanhGelu, double>();
}
TEST_CASE("Dense on Cuda: samples of 16 bits, gradients in float", "[dense][half]") {
  cases<17, 10, ops::Keep, sk::bf16, float>();
  cases<64, 32, Relu, sk::bf16, float>();
  cases<17, 10, ops::Keep, sk::fp16, float>();
  cases<24, 40, TanhGelu, sk::fp16, float>();
  cases<24, 7, Sigmoid, sk::bf16, float>();
}

TEST_CASE("Dense on Cuda: exact GELU is not the library's", "[dense]") {
  STATIC_REQUIRE(ops::cublas::activation_of<ErfGelu> == ops::cublas::Activation::other);
  STATIC_REQUIRE(ops::cublas::activation_of<TanhGelu> == ops::cublas::Activation::gelu);
  STATIC_REQUIRE(ops::cublas::activation_of<Relu> == ops::cublas::Activation::relu);
  STATIC_REQUIRE(ops::cublas::activation_of<ops::Keep> == ops::cublas::Activation::keep);
}

namespace {
/// Plans of products with GELU in their kernel that running a layer of this type makes.
template <class Sample> long gelu_plans(bool tf32) {
  const auto count = [] {
    long n = 0;
    for (const auto& [key, plan] : ops::cublas::detail::library().plans)
      for (const auto e : {ops::cublas::Epilogue::gelu, ops::cublas::Epilogue::gelu_bias, ops::cublas::Epilogue::gelu_aux,
                           ops::cublas::Epilogue::gelu_aux_bias})
        n += key.part[9] == static_cast<long>(e);
    return n;
  };
  const long before = count();
  const ops::Dense<sk::Cuda, float, 19, 48> dense({.tf32 = tf32});
  OnDevice<Sample> x(6 * sk::row_pitch(19), Sample(0.5f)), w(19 * 48, Sample(0.25f)), b(48, Sample(1.0f)),
      y(6 * 48, Sample(0.0f)), kept(6 * 48, Sample(0.0f));
  OnDevice<float> dw(19 * 48, 0.0f), db(48, 0.0f);
  dense.prepare<TanhGelu, Sample>(6, w.data(), b.data(), dw.data(), db.data());
  const Sample* bias = b.data();
  const std::size_t prepared = ops::cublas::detail::library().plans.size();
  dense.forward<TanhGelu>(6, x.data(), w.data(), nullptr, bias, y.data());
  dense.forward_keeping<TanhGelu>(6, x.data(), w.data(), bias, kept.data(), y.data());
  CHECK(ops::cublas::detail::library().plans.size() == prepared);
  return count() - before;
}
}  // namespace

TEST_CASE("Dense on Cuda: GELU of strict floats is our own kernel, that of TF32 and 16 bits the library's", "[dense]") {
  CHECK(gelu_plans<float>(false) == 0);
  CHECK(gelu_plans<float>(true) == 2);
  CHECK(gelu_plans<sk::fp16>(false) == 2);
}

TEST_CASE("Dense on Cuda: TF32 only where it is allowed", "[dense]") {
  // 1 + 2^-12 is 1 in TF32, whose mantissa has 10 bits.
  const float fine = 1 + 0x1p-12f;
  OnDevice<float> x(32 * 64, fine), w(64 * 64, 1.0f), y(32 * 64, 0.0f);
  const ops::Dense<sk::Cuda, float, 64, 64> full, fast({.tf32 = true});
  full.forward<ops::Keep>(32, x.data(), w.data(), nullptr, static_cast<const float*>(nullptr), y.data());
  CHECK(y.values()[5] == 64 * fine);
  fast.forward<ops::Keep>(32, x.data(), w.data(), nullptr, static_cast<const float*>(nullptr), y.data());
  CHECK(std::abs(y.values()[5] - 64) <= 64 * 0x1p-11f);
}

namespace {
/// chain_and_sum for N columns, in place over y or over dy.
template <int N, class T, class G> void chained(long count, bool accumulate, bool wants_sums, int in_place) {
  using Chain = nn::detail::Chain<nn::SigmoidFunction>;
  constexpr long pitch = sk::row_pitch(N);
  const auto dy = rows<T>(count, N, 1.3, nan<T>()), y = rows<T>(count, N, 0.7, nan<T>());
  OnDevice<T> DY(dy), Y(y), Other(count * pitch, nan<T>());
  const std::vector<G> start = rows<G>(1, N, 0.5, G(0));
  OnDevice<G> S(start);
  T* g = in_place == 0 ? Other.data() : in_place == 1 ? DY.data() : Y.data();
  ops::chain_and_sum<sk::Cuda, N, Chain>(count, DY.data(), Y.data(), g, wants_sums ? S.data() : nullptr, accumulate);
  const auto got = (in_place == 0 ? Other : in_place == 1 ? DY : Y).values();
  const auto sums = S.values();
  std::vector<double> want(static_cast<std::size_t>(N));
  long wrong = 0;
  for (long r = 0; r < count; ++r)
    for (long j = 0; j < N; ++j) {
      const std::size_t i = static_cast<std::size_t>(r * pitch + j);
      const double v = value_of(dy[i]) * value_of(y[i]) * (1 - value_of(y[i]));
      wrong += !near(got[i], v, 2);
      want[static_cast<std::size_t>(j)] += v;
    }
  for (long j = 0; j < pitch; ++j) {
    const std::size_t i = static_cast<std::size_t>(j);
    if (j >= N) wrong += !(sums[i] == G(0));
    else if (!wants_sums) wrong += sums[i] != start[i];
    else wrong += !near(sums[i], want[i] + (accumulate ? static_cast<double>(start[i]) : 0), static_cast<double>(count) + 1);
  }
  INFO("N " << N << " rows " << count << " accumulate " << accumulate << " sums " << wants_sums << " in place " << in_place);
  CHECK(wrong == 0);
}
}  // namespace

TEST_CASE("chain_and_sum on Cuda", "[dense]") {
  for (long count : {0L, 1L, 33L, 128L})
    for (bool accumulate : {false, true}) {
      chained<1, float, float>(count, accumulate, true, 0);
      chained<10, float, float>(count, accumulate, true, 1);
      chained<17, double, double>(count, accumulate, true, 2);
      chained<10, sk::bf16, float>(count, accumulate, true, 2);
      chained<10, float, float>(count, accumulate, false, 0);
    }
  STATIC_REQUIRE(ops::RowBlocks(128, 10).blocks == 1);
  STATIC_REQUIRE(ops::RowBlocks(1000, 80).blocks == 1);
  STATIC_REQUIRE(ops::RowBlocks(7001, 40).blocks > 1);
  chained<40, float, float>(7001, true, true, 2);
  chained<40, sk::fp16, float>(7001, false, true, 0);
  chained<40, double, double>(7001, true, true, 1);
}

TEST_CASE("Dense on Cuda: the same bits twice", "[dense]") {
  const auto x = rows<float>(777, 90, 0.7, nan<float>()), dy = rows<float>(777, 130, 1.3, nan<float>());
  OnDevice<float> X(x), DY(dy), One(91 * sk::row_pitch(130), 0.0f), Two(91 * sk::row_pitch(130), 0.0f);
  const ops::Dense<sk::Cuda, float, 90, 130> dense;
  for (auto* d : {&One, &Two})
    dense.gradients(ops::DenseGradients<float>{
        .batch = 777, .x = X.data(), .dy = DY.data(), .dw = d->data(), .db = d->data() + 90 * sk::row_pitch(130)});
  CHECK(One.values() == Two.values());
}
