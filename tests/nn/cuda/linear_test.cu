// SPDX-License-Identifier: Apache-2.0
// Linear and its composites on the GPU beside the Cpu, alone and in a network; what the rewriting makes of them.
#include <skein/nn/cuda/linear.hpp>

#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/ops/cuda/map.hpp>

#include "../../support/device_harness.hpp"
#include "../../support/on_device.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;
using TanhGelu = nn::BasicGelu<nn::TanhForm>;

namespace {

using Net = nn::Sequential<nn::Linear<80>, nn::Relu, nn::Linear<40>, TanhGelu, nn::Linear<20>, nn::Gelu, nn::Linear<10>>;
using Rewritten = nn::Fused<Net, sk::Cuda>;
template <class A> using OnCuda = nn::OnDevice<A, sk::Cuda>;
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 0>,
                             nn::FusedLayer<OnCuda<nn::LinearActivation<nn::Linear<80>, nn::Relu>>, nn::Linear<80>, nn::Relu>>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 1>,
                             nn::FusedLayer<OnCuda<nn::LinearGelu<nn::Linear<40>, TanhGelu>>, nn::Linear<40>, TanhGelu>>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 2>, OnCuda<nn::Linear<20>>>, "the exact GELU is not the library's");
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 4>, OnCuda<nn::Linear<10>>>);

constexpr nn::MemoryRequirements sizes = nn::analyze<Rewritten>({1, {300}});
static_assert(sizes.packed_weights == 0 && sizes.workspace == 0 && sizes.stored == nn::analyze<Net>({1, {300}}).stored);
static_assert(sizes.layer_nodes == nn::analyze<Net>({1, {300}}).layer_nodes);
static_assert(nn::needs_of<nn::Linear<512>>({1, {512}}).splits_gradients);
static_assert(!nn::needs_of<OnCuda<nn::Linear<512>>>({1, {512}}).splits_gradients);
static_assert(nn::computes_in<OnCuda<nn::Linear<10>>, sk::Cuda, sk::bf16> && !nn::computes_in<nn::Linear<10>, sk::Cpu, sk::bf16>);
static_assert(nn::computes_in<sk::TypeAt<Rewritten::children, 0>, sk::Cuda, sk::fp16>);

/// The composite on the device beside the composite, or the two parts, on the Cpu.
template <class L, class A, class In, class Scalar> void both(const support::AgreeOptions& o) {
  agree<nn::LinearActivation<L, A>, In, Scalar>(o);
}
template <int In, class L, class A> void composites() {
  for (long batch : {0L, 1L, 7L, 129L})
    for (bool accumulate : {false, true}) both<L, A, sk::Shape<In>, float>({.batch = batch, .accumulate = accumulate});
  both<L, A, sk::Shape<In>, float>({.batch = 7, .wants_dx = false});
}

}  // namespace

TEMPLATE_TEST_CASE("Linear on Cuda agrees with the Cpu", "[linear]", float, double) {
  for (long batch : {0L, 1L, 5L, 128L})
    for (bool accumulate : {false, true}) {
      agree<nn::Linear<1>, sk::Shape<1>, TestType>({.batch = batch, .accumulate = accumulate});
      agree<nn::Linear<10>, sk::Shape<84>, TestType>({.batch = batch, .accumulate = accumulate});
      agree<nn::Linear<3, sk::NoBias>, sk::Shape<17>, TestType>({.batch = batch, .accumulate = accumulate});
    }
  agree<nn::Linear<84>, sk::Shape<120>, TestType>({.batch = 13, .wants_dx = false});
  agree<nn::Linear<512>, sk::Shape<513>, TestType>({.batch = 6, .accumulate = true});
}
TEST_CASE("Linear with an activation on Cuda agrees with the Cpu", "[linear]") {
  composites<17, nn::Linear<10>, nn::Relu>();
  both<nn::Linear<10>, nn::Relu, sk::Shape<17>, double>({.batch = 5, .accumulate = true});
  composites<1, nn::Linear<80>, nn::Relu>();
  composites<40, nn::Linear<1>, nn::Sigmoid>();
  composites<2, nn::Linear<3, sk::NoBias>, nn::Tanh>();
  composites<84, nn::Linear<120, sk::NoBias>, nn::LeakyRelu<>>();
}

namespace {
/// The GELU composite beside a Linear and a Gelu on the Cpu.
template <int In, class L> void gelu(long batch, bool accumulate) {
  using Middle = sk::Shape<L::describe({1, {In}}).output.e[0]>;
  support::LayerHarness<L, sk::Shape<In>, float> first(batch);
  support::LayerHarness<TanhGelu, Middle, float> second(batch);
  support::LayerHarness<nn::LinearGelu<L, TanhGelu>, sk::Shape<In>, float, sk::Cuda> one(batch);
  for (int turn = 0; turn < (accumulate ? 2 : 1); ++turn) {
    one.forward();
    first.forward();
    second.set_x([&](long b, long i) { return first.y_at(b, i); });
    second.forward();
    one.backward(true, turn == 1);
    second.backward();
    first.set_dy([&](long b, long i) { return second.dx_at(b, i); });
    first.backward(true, turn == 1);
  }
  const auto same = [](float a, float b) { return support::close(a, b, support::Roundings::function, 8); };
  long wrong = 0;
  for (long b = 0; b < batch; ++b) {
    for (long j = 0; j < Middle::count; ++j) wrong += !same(one.y_at(b, j), second.y_at(b, j));
    for (long i = 0; i < In; ++i) wrong += !same(one.dx_at(b, i), first.dx_at(b, i));
  }
  for (long i = 0; i < one.gradients().size(); ++i) wrong += !same(one.gradients()[i], first.gradients()[i]);
  INFO("in " << In << " out " << Middle::count << " batch " << batch << " accumulate " << accumulate);
  CHECK(wrong == 0);
  CHECK(one.worst_gap() == 0);
  CHECK(one.intact());
}
}  // namespace

TEST_CASE("Linear and the tanh form of GELU on Cuda agree with their parts", "[linear]") {
  for (long batch : {0L, 1L, 9L, 70L})
    for (bool accumulate : {false, true}) {
      gelu<17, nn::Linear<40>>(batch, accumulate);
      gelu<20, nn::Linear<10, sk::NoBias>>(batch, accumulate);
      gelu<20, nn::Linear<3>>(batch, accumulate);  // too narrow for the library's epilogue
    }
}

TEST_CASE("Linear on Cuda: gradients are those of finite differences", "[linear]") {
  support::LayerHarness<nn::Linear<7>, sk::Shape<17>, double, sk::Cuda> h(3);
  h.check_gradients(1e-6, 25);
  support::LayerHarness<nn::LinearActivation<nn::Linear<6>, nn::Tanh>, sk::Shape<5>, double, sk::Cuda> fused(2);
  fused.check_gradients(1e-6, 25);
}

// max(x, 0) of what is no number is 0 in some libraries, and cuBLASLt's documentation does not say: then the gradient must show
// it.
TEMPLATE_TEST_CASE("Linear on Cuda: a number that is none is seen", "[linear]", nn::Relu, nn::Sigmoid) {
  support::LayerHarness<nn::LinearActivation<nn::Linear<8>, TestType>, sk::Shape<8>, float, sk::Cuda> h(1);
  h.set_parameter(0, [](long) { return std::nan(""); });
  h.forward();
  const bool seen = std::isnan(h.y_at(0, 3));
  if (std::is_same_v<TestType, nn::Sigmoid>) CHECK(seen);
  else if (!seen) WARN("the library's ReLU turns NaN into 0");
  h.backward();
  CHECK(std::isnan(h.dx_at(0, 3)));
}

namespace {
/// A layer on samples of 16 bits, whose parameters and gradients are floats, beside the same in float on the Cpu.
template <class OnCpu, class L, class Half> void in_half(long batch) {
  using In = sk::Shape<24>;
  support::LayerHarness<OnCpu, In, float> here(batch);
  const auto rounded = [](support::Guarded<float>& a) {
    for (float& v : a) v = static_cast<float>(Half(v));
  };
  rounded(here.parameters), rounded(here.x), rounded(here.dy);
  here.forward();
  here.backward();

  const auto cast = [](const support::Guarded<float>& a) {
    std::vector<Half> h;
    for (long i = 0; i < a.size(); ++i) h.push_back(Half(a[i]));
    return h;
  };
  constexpr sk::LayerInfo info = L::describe(In::extents);
  support::OnDevice<float> parameters({here.parameters.begin(), here.parameters.end()}),
      gradients(info.stored_parameters(), 0.0f);
  support::OnDevice<float> saved_for_backward(batch * info.saved_for_backward, 0.0f);
  support::OnDevice<Half> weights(cast(here.parameters)), x(cast(here.x)), dy(cast(here.dy)), y(here.y.size(), Half(0.0f)),
      dx(here.dx.size(), Half(0.0f));
  nn::Context<float, sk::Cuda> context;
  context.accumulate = false;
  nn::Frame<float, sk::Cuda, Half> f;
  f.parameters = parameters.data(), f.weights = weights.data(), f.gradients = gradients.data(),
  f.saved_for_backward = saved_for_backward.data();
  f.x = x.data(), f.y = y.data(), f.dy = dy.data(), f.dx = dx.data(), f.batch = batch, f.context = &context;
  L::template prepare<In>(f);
  L::template forward<In>(f);
  L::template backward<In>(f);

  const double unit = sizeof(Half) == 2 && std::is_same_v<Half, sk::bf16> ? 0x1p-7 : 0x1p-10;
  const auto far = [&](float a, float b) { return !(std::abs(a - b) <= 4 * unit * (1 + std::abs(b))); };
  const auto got_y = y.values(), got_dx = dx.values();
  const auto got = gradients.values();
  long wrong = 0;
  for (long b = 0; b < batch; ++b) {
    for (long j = 0; j < here.out_count; ++j)
      wrong += far(got_y[static_cast<std::size_t>(b * here.out_pitch + j)], here.y_at(b, j));
    for (long i = 0; i < here.in_count; ++i)
      wrong += far(got_dx[static_cast<std::size_t>(b * here.in_pitch + i)], here.dx_at(b, i));
  }
  for (long i = 0; i < here.gradients().size(); ++i) wrong += far(got[static_cast<std::size_t>(i)], here.gradients()[i]);
  CHECK(wrong == 0);
}
}  // namespace

TEMPLATE_TEST_CASE("Linear on Cuda: samples of 16 bits, float gradients", "[linear][half]", sk::bf16, sk::fp16) {
  using Line = nn::Linear<10>;
  in_half<Line, Line, TestType>(9);
  in_half<nn::LinearActivation<Line, nn::Relu>, nn::LinearActivation<Line, nn::Relu>, TestType>(9);
  STATIC_REQUIRE(nn::computes_in<nn::LinearGelu<Line, TanhGelu>, sk::Cuda, TestType>);
}

TEST_CASE("Linear on Cuda: the summary's kernel", "[linear]") {
  using Frame = nn::Frame<float, sk::Cuda>;
  CHECK(OnCuda<nn::Linear<10>>::kernel<sk::Shape<84>, Frame>() == "cuBLASLt");
}
