// SPDX-License-Identifier: Apache-2.0
// A convolution with what follows it, run by the layer under test and by plain loops in double: outputs and every gradient.
#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <skein/nn/fused/conv_relu_pool.hpp>

#include "larger.hpp"
#include "layer_harness.hpp"

namespace support {

/// Twelve random bits in [-1, 1): exact in every scalar type, and without the cancellation of sums over waves.
inline double scattered(long i, std::uint32_t salt) {
  std::uint32_t h = static_cast<std::uint32_t>(i + 1) * 2654435761u + salt * 40503u;
  h = (h ^ h >> 15) * 2246822519u;
  return static_cast<double>((h ^ h >> 13) >> 20) / 2048 - 1;
}
template <class H> void scatter(H& h) {
  h.set_x([](long b, long i) { return scattered(1000 * b + i, 1); });
  h.set_dy([](long b, long i) { return scattered(1000 * b + i, 2); });
  if constexpr (H::info.entries() > 0) h.set_parameter(0, [](long i) { return scattered(i, 3); });
  if constexpr (H::info.entries() > 1) h.set_parameter(1, [](long i) { return scattered(i, 4); });
}

/// The largest |a - b|, by the largest |b|.
inline double apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e300;
  double difference = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = larger(difference, a[i] - b[i]);
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

template <class H> std::vector<double> gradient_of(const H& h, int p) {
  std::vector<double> v;
  for (long i = 0; i < H::parameter_size(p); ++i) v.push_back(static_cast<double>(h.gradient_at(p, i)));
  return v;
}
template <class A> std::vector<double> doubles(A& a) { return {a.begin(), a.end()}; }

struct ConvChain {                            ///< what plain loops make of the inputs of a harness
  std::vector<double> y, dx, dweight, dbias;  // dweight with padded rows
};
template <class H> ConvChain naive_chain(H& h, const sk::ops::ConvReluPoolGeometry& g, bool has_bias) {
  namespace reference = sk::ops::reference;
  std::vector<double> x = doubles(h.x), parameters = doubles(h.parameters), dy = doubles(h.dy);
  const std::size_t weights = static_cast<std::size_t>(g.conv.weight_rows() * g.conv.weight_pitch()),
                    n = static_cast<std::size_t>(h.batch);
  std::vector<double> conv(n * static_cast<std::size_t>(g.conv.out_count())), dconv(conv.size());
  ConvChain r{std::vector<double>(dy.size()), std::vector<double>(x.size()), std::vector<double>(weights),
              std::vector<double>(static_cast<std::size_t>(g.conv.weight_pitch()))};
  std::vector<sk::ops::ArgMax> winners(dy.size());
  sk::ops::Conv2dCall<double> c;
  c.batch = h.batch;
  c.x = x.data();
  c.weight = parameters.data();
  c.bias = has_bias ? parameters.data() + weights : nullptr;
  c.y = conv.data();
  reference::conv2d_forward(g.conv, c);
  if (g.relu)
    for (double& v : conv) v = std::max(v, 0.0);
  if (g.pooled()) {
    reference::max_pool2d_forward(g.pool(), h.batch, conv.data(), r.y.data(), winners.data());
    reference::max_pool2d_backward(g.pool(), h.batch, dy.data(), winners.data(), dconv.data());
  } else {  // volumes too
    r.y = conv;
    dconv = dy;
  }
  if (g.relu)
    for (std::size_t i = 0; i < conv.size(); ++i)
      if (!(conv[i] > 0)) dconv[i] = 0;
  c.dy = dconv.data();
  c.dx = r.dx.data();
  c.dweight = r.dweight.data();
  c.dbias = has_bias ? r.dbias.data() : nullptr;
  reference::conv2d_backward_data(g.conv, c);
  reference::conv2d_backward_weights(g.conv, c);
  return r;
}
template <class H> std::vector<double> logical(const H&, const std::vector<double>& stored, long columns) {
  std::vector<double> v;
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (static_cast<long>(i) % sk::row_pitch(columns) < columns) v.push_back(stored[i]);
  return v;
}

/// Layer L (a Conv2d or a composite of it) must do what the chain of plain loops does. `exact`: small integers, many ties, every
/// sum exact: then to the last bit.
template <class L, class Convolution, class In, class Scalar>
void follows_the_loops(const sk::ops::ConvReluPoolGeometry& g, long batch, bool exact = false, int workers = 1) {
  using H = LayerHarness<L, In, Scalar>;
  INFO("kernel: " << std::string(L::template kernel<In, typename H::FrameType>()) << ", batch " << batch
                  << (exact ? ", integers" : ""));
  H h(batch, workers);
  if (exact) {
    h.set_x([](long b, long i) { return (b * 7 + i * 13 / 5) % 4 - 1.0; });
    h.set_dy([](long b, long i) { return (b * 5 + i * 11 / 3) % 7 - 3.0; });
    h.set_parameter(0, [](long i) { return i * 17 / 4 % 3 - 1.0; });
    if (Convolution::has_bias) h.set_parameter(1, [](long i) { return i % 2 - 1.0; });
  } else {
    scatter(h);
  }
  h.forward();
  h.backward();
  const ConvChain r = naive_chain(h, g, Convolution::has_bias);
  const double tolerance = exact ? 0 : 64 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  CHECK(apart(doubles(h.y), r.y) <= tolerance);
  CHECK(apart(doubles(h.dx), r.dx) <= tolerance);
  CHECK(apart(gradient_of(h, 0), logical(h, r.dweight, Convolution::filters)) <= tolerance);
  if constexpr (Convolution::has_bias) CHECK(apart(gradient_of(h, 1), logical(h, r.dbias, Convolution::filters)) <= tolerance);
  CHECK(h.intact());
  CHECK(h.worst_gap() == 0);
  const auto dweight = gradient_of(h, 0);  // the first layer: nobody wants dx; and gradients that were there are added to
  h.backward(false, true);
  for (std::size_t i = 0; i < dweight.size(); ++i)
    if (!(std::abs(gradient_of(h, 0)[i] - 2 * dweight[i]) <= 1e-3 * (1 + std::abs(dweight[i]))))
      FAIL("gradients are not added to");
  for (const Scalar v : h.dx)
    if (!std::isnan(v)) FAIL("dx was written though nobody wants it");
}

template <class L, class Convolution, class In> void follows_the_loops_always(const sk::ops::ConvReluPoolGeometry& g) {
  for (long batch : {0L, 1L, 3L, 5L}) {
    follows_the_loops<L, Convolution, In, float>(g, batch);
    follows_the_loops<L, Convolution, In, double>(g, batch);
  }
  follows_the_loops<L, Convolution, In, float>(g, 5, true);
  follows_the_loops<L, Convolution, In, double>(g, 5, false, 2);
}
template <class Convolution, class In> void conv_follows() {
  follows_the_loops_always<Convolution, Convolution, In>({Convolution::geometry(In::extents)});
}
template <class Convolution, bool Rectifies, class Pool, class In> void composite_follows() {
  using L = sk::nn::ConvReluPool<Convolution, Rectifies, Pool>;
  follows_the_loops_always<L, Convolution, In>(L::geometry(In::extents));
}

/// Values of a PyTorch fixture.
template <class L, class In> void matches_pytorch(const std::vector<double>& y, const std::vector<double>& dx,
                                                  const std::vector<double>& dweight = {},
                                                  const std::vector<double>& dbias = {}) {
  const auto run = [&]<class Scalar>(Scalar, double tolerance) {
    LayerHarness<L, In, Scalar> h(2);
    scatter(h);
    h.forward();
    h.backward();
    CHECK(h.intact());
    std::vector<double> out;
    for (long b = 0; b < 2; ++b)
      for (long i = 0; i < h.out_count; ++i) out.push_back(static_cast<double>(h.y_at(b, i)));
    CHECK(apart(out, y) <= tolerance);
    CHECK(apart(doubles(h.dx), dx) <= tolerance);
    if constexpr (L::describe(In::extents).entries() > 0) CHECK(apart(gradient_of(h, 0), dweight) <= tolerance);
    if constexpr (L::describe(In::extents).entries() > 1) CHECK(apart(gradient_of(h, 1), dbias) <= tolerance);
  };
  run(double(), 1e-14);
  run(float(), 1e-6);
}

}  // namespace support
