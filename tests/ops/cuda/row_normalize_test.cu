// SPDX-License-Identifier: Apache-2.0
// Layer normalisation's kernels with many rows and parts, with several lanes a row, and with 16-bit samples. The layer itself is
// in tests/nn/cuda/layer_norm_test.cu.
#include <skein/core/shape.hpp>
#include <skein/ops/cuda/row_normalize.hpp>

#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "../../support/close.hpp"
#include "../../support/device_array.hpp"
#include "../../support/host_lanes.hpp"

namespace sk = skein;
namespace ops = skein::ops;
using support::DeviceArray, support::Roundings;

namespace {
std::vector<float> wave(long n, double step, double shift = 0) {
  std::vector<float> v;
  for (long i = 0; i < n; ++i) v.push_back(static_cast<float>(std::sin(step * static_cast<double>(i + 1)) + shift));
  return v;
}
template <class A, class B> long apart(const A& a, const B& b, double scale) {
  long wrong = a.size() != b.size();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) wrong += !support::close<float>(a[i], b[i], Roundings::sum, scale);
  return wrong;
}
struct Data {
  ops::RowShape s;
  std::vector<float> x, dy, weight, bias, y, saved_for_backward, dx, dweight, dbias;
  explicit Data(ops::RowShape shape)
      : s(shape), x(wave(s.rows * s.pitch, 0.37, 0.5)), dy(wave(s.rows * s.pitch, 0.81)), weight(wave(s.n, 0.9, 1)),
        bias(wave(s.n, 1.3)), y(x.size()), saved_for_backward(static_cast<std::size_t>(2 * s.rows)), dx(x.size()),
        dweight(wave(s.n, 0.2)), dbias(wave(s.n, 0.4)) {
    for (long r = 0; r < s.rows; ++r)
      for (long c = s.n; c < s.pitch; ++c)
        x[static_cast<std::size_t>(r * s.pitch + c)] = dy[static_cast<std::size_t>(r * s.pitch + c)] = 0;
  }
  void on_cpu() {
    std::vector<float> scratch(static_cast<std::size_t>(2 * sk::row_pitch(s.n)));
    ops::row_normalize<sk::Cpu>(s, x.data(), weight.data(), bias.data(), 1e-5, y.data(), saved_for_backward.data());
    ops::row_normalize_backward<sk::Cpu>(s, x.data(), dy.data(), weight.data(), saved_for_backward.data(), dx.data(),
                                         dweight.data(), dbias.data(), scratch.data());
  }
};
}  // namespace

TEST_CASE("Layer normalisation on the GPU over many rows, in packs and value by value", "[ops][cuda]") {
  const sk::cuda::PlainKernels kernels(GENERATE(false, true));
  for (const ops::RowShape& s : {ops::RowShape{1, 1, 1}, ops::RowShape{5, 10, 16}, ops::RowShape{700, 33, 48},
                                 ops::RowShape{9, 300, 304}, ops::RowShape{20000, 8, 8}}) {
    Data here(s), start(s);
    here.on_cpu();
    const DeviceArray<float> x(start.x), dy(start.dy), weight(start.weight), bias(start.bias);
    DeviceArray<float> y(start.x.size(), 3.0f), saved_for_backward(start.saved_for_backward), dx(start.x.size(), 3.0f),
        dweight(start.dweight), dbias(start.dbias);
    ops::row_normalize_prepare<sk::Cuda, float>(s);
    ops::row_normalize<sk::Cuda>(s, x.data(), weight.data(), bias.data(), 1e-5, y.data(), saved_for_backward.data());
    ops::row_normalize_backward<sk::Cuda>(s, x.data(), dy.data(), weight.data(),
                                          static_cast<const float*>(saved_for_backward.data()), dx.data(), dweight.data(),
                                          dbias.data(), static_cast<float*>(nullptr));
    INFO(s.rows << " rows of " << s.n);
    CHECK(apart(y.host(), here.y, 10) == 0);
    CHECK(apart(saved_for_backward.host(), here.saved_for_backward, 10) == 0);
    CHECK(apart(dx.host(), here.dx, 100) == 0);
    CHECK(apart(dweight.host(), here.dweight, std::sqrt(static_cast<double>(s.rows)) + 10) == 0);
    CHECK(apart(dbias.host(), here.dbias, std::sqrt(static_cast<double>(s.rows)) + 10) == 0);
  }
}

TEST_CASE("Layer normalisation's lanes share a row", "[ops][cuda]") {
  for (const ops::RowShape& s : {ops::RowShape{3, 5, 8}, ops::RowShape{4, 70, 80}}) {
    Data here(s), lanes(s);
    here.on_cpu();
    support::by_lanes<8>(s.rows, ops::cuda::RowNormalize<float, float>{s, lanes.x.data(), lanes.weight.data(), lanes.bias.data(),
                                                                       1e-5, lanes.y.data(), lanes.saved_for_backward.data()});
    support::by_lanes<8>(s.rows,
                         ops::cuda::RowNormalizeBackward<float, float>{s, lanes.x.data(), lanes.dy.data(), lanes.weight.data(),
                                                                       lanes.saved_for_backward.data(), lanes.dx.data()});
    CHECK(apart(lanes.y, here.y, 10) == 0);
    Data packs(s);
    support::by_lanes<8>(s.rows,
                         ops::cuda::RowNormalize<float, float, 4>{s, packs.x.data(), packs.weight.data(), packs.bias.data(), 1e-5,
                                                                  packs.y.data(), packs.saved_for_backward.data()});
    support::by_lanes<8>(s.rows,
                         ops::cuda::RowNormalizeBackward<float, float, 4>{s, packs.x.data(), packs.dy.data(), packs.weight.data(),
                                                                          packs.saved_for_backward.data(), packs.dx.data()});
    CHECK(apart(packs.y, here.y, 10) == 0);
    CHECK(apart(packs.saved_for_backward, here.saved_for_backward, 10) == 0);
    CHECK(apart(packs.dx, here.dx, 100) == 0);
    const std::vector<float> parts(static_cast<std::size_t>(2 * 20 * s.n), 0.1f);
    support::by_lanes<8>(2 * s.n,
                         ops::cuda::JoinColumnParts<float>{s.n, 20, parts.data(), packs.dweight.data(), packs.dbias.data()});
    const Data start(s);
    for (std::size_t i = 0; i < start.dweight.size(); ++i) CHECK(packs.dweight[i] == Approx(start.dweight[i] + 2));
    for (std::size_t i = 0; i < start.dbias.size(); ++i) CHECK(packs.dbias[i] == Approx(start.dbias[i] + 2));
    CHECK(apart(lanes.saved_for_backward, here.saved_for_backward, 10) == 0);
    CHECK(apart(lanes.dx, here.dx, 100) == 0);
  }
}

TEST_CASE("Layer normalisation's lanes make the bias of a row of large equal values", "[ops][cuda]") {
  for (const float level : {12345.678f, 54321.98f}) {
    Data row({1, 100, 112});
    std::fill_n(row.x.begin(), 100, level);
    support::by_lanes<8>(1, ops::cuda::RowNormalize<float, float, 4>{row.s, row.x.data(), row.weight.data(), row.bias.data(),
                                                                     1e-5, row.y.data(), row.saved_for_backward.data()});
    row.y.resize(100);
    CHECK(row.y == row.bias);
  }
}

TEST_CASE("Layer normalisation on the GPU takes 16-bit samples and float parameters", "[ops][cuda]") {
  const ops::RowShape s{6, 20, 32};
  Data here(s);
  for (float& v : here.x) v = static_cast<float>(sk::bf16(v));
  std::vector<sk::bf16> half;
  for (const float v : here.x) half.push_back(sk::bf16(v));
  here.on_cpu();
  const DeviceArray<sk::bf16> x(half);
  const DeviceArray<float> weight(here.weight), bias(here.bias);
  DeviceArray<sk::bf16> y(half.size(), sk::bf16(3.0f));
  DeviceArray<float> saved_for_backward(here.saved_for_backward.size(), 0.0f);
  ops::row_normalize<sk::Cuda>(s, x.data(), weight.data(), bias.data(), 1e-5, y.data(), saved_for_backward.data());
  const std::vector<sk::bf16> got = y.host();
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(std::abs(static_cast<float>(got[i]) - here.y[i]) <= 0x1p-8 * std::max(1.0f, std::abs(here.y[i])));
}
