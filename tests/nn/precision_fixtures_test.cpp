// SPDX-License-Identifier: Apache-2.0
// Against PyTorch with the same values between the layers rounded to 16 bits: fixtures/make_precision.py.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/tanh.hpp>

#include "../fixtures/precision.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr long batch = 8, in = 6, out = 4;
std::vector<float> wave(long n, double step, double phase, double amplitude = 1) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(amplitude * std::sin(step * static_cast<double>(i + 1) + phase));
  return v;
}
struct Result {
  std::vector<double> outputs, gradients;
};
template <class P> Result run() {
  using Model = sk::Model<nn::Sequential<nn::Linear<16>, nn::Tanh, nn::Linear<4>>, sk::Shape<6>, sk::Cpu, P>;
  Model model;
  const std::vector<float> values[] = {wave(in * 16, 0.9, 0.2, 0.5), wave(16, 1.7, 0.5), wave(16 * out, 1.3, 0.1, 0.5),
                                       wave(out, 0.8, 0.4)};
  const auto each = [](const sk::plan::Entry& e, auto&& visit) {
    for (long i = 0; i < e.extents.count(); ++i)
      visit(e.offset + i / e.extents.last() * sk::row_pitch(e.extents.last()) + i % e.extents.last(), i);
  };
  const std::vector<float>* next = values;
  for (const sk::plan::Entry& e : Model::program.parameters()) {
    each(e, [&](long at, long i) { model.modify()[static_cast<std::size_t>(at)] = (*next)[static_cast<std::size_t>(i)]; });
    ++next;
  }
  const std::vector<float> x = wave(batch * in, 0.7, 0.3), target = wave(batch * out, 1.1, 0.9);
  const sk::BatchView<float> b{.x = x.data(), .pitch = in, .targets = target.data(), .target_pitch = out, .count = batch};
  sk::Executor executor{model, nn::Mse{}, {.capacity = batch, .threads = 1}};
  constexpr double scale = 64;  // a power of two: it changes a gradient only where fp16 would lose it
  executor.forward_backward(b, {.scale = scale / static_cast<double>(batch * out)});
  Result r;
  for (long i = 0; i < batch * out; ++i) r.outputs.push_back(static_cast<double>(executor.outputs()[i]));
  for (const sk::plan::Entry& e : Model::program.parameters())
    each(e, [&](long at, long) {
      r.gradients.push_back(static_cast<double>(model.gradients()[static_cast<std::size_t>(at)]) / scale);
    });
  return r;
}
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double d = 0, n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    d += (a[i] - b[i]) * (a[i] - b[i]);
    n += b[i] * b[i];
  }
  return std::sqrt(d / n);
}
/// To float's rounding, with room for one value in a hundred that falls on the other side of a rounding to 16 bits.
template <class P> void agrees(const std::vector<double>& outputs, const std::vector<double>& gradients) {
  constexpr double unit = std::numeric_limits<typename P::activation>::epsilon();
  const Result r = run<P>(), wide = run<float>();
  CHECK(apart(r.outputs, outputs) < 0.05 * unit);
  CHECK(apart(r.gradients, gradients) < 0.05 * unit);
  CHECK(apart(wide.outputs, outputs) > 0.15 * unit);
  CHECK(apart(wide.gradients, gradients) > 0.15 * unit);
}
}  // namespace

TEST_CASE("16-bit activations are PyTorch's, rounded between the layers", "[nn]") {
  namespace fixture = fixtures::precision;
  agrees<sk::precision::bf16>(fixture::bf16_outputs, fixture::bf16_gradients);
  agrees<sk::precision::fp16>(fixture::fp16_outputs, fixture::fp16_gradients);
  // module.bfloat16() rounds the weights too.
  constexpr double unit = std::numeric_limits<sk::bf16>::epsilon();
  CHECK(apart(run<sk::precision::bf16>().outputs, fixture::module_outputs) < unit);
}
