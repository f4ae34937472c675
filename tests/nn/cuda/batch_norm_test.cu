// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/cuda/batch_norm.hpp>

#include "support/device_harness.hpp"

namespace sk = skein;
using sk::Cuda;
using sk::Shape;
using sk::nn::BatchNorm;
using support::agree;
using support::LayerHarness;
using support::Roundings;

namespace {

/// BatchNorm and Relu on the Cpu as a network runs them: one after the other.
template <class Norm> struct NormThenRelu {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    sk::LayerInfo info = Norm::describe(in);
    info.saves_output = true;
    return info;
  }
  template <class Device> static constexpr sk::KernelNeeds needs(sk::Extents in) { return Norm::template needs<Device>(in); }
  template <class In, class Frame> static void forward(Frame& f) {
    Norm::template forward<In>(f);
    for (long i = 0; i < f.batch * sk::sample_pitch(In::extents); ++i) f.y[i] = f.y[i] < 0 ? 0 : f.y[i];
  }
  template <class In, class Frame> static void backward(Frame& f) {
    std::vector<typename Frame::Scalar> passed(f.dy, f.dy + f.batch * sk::sample_pitch(In::extents));
    for (std::size_t i = 0; i < passed.size(); ++i)
      if (!(f.y[i] > 0)) passed[i] = 0;
    Frame g = f;
    g.dy = passed.data();
    Norm::template backward<In>(g);
  }
};

template <class Norm, class In> void agrees() {
  using sk::nn::Phase;
  for (const long batch : {2L, 5L, 9L}) {
    agree<Norm, In, float>({.batch = batch, .roundings = Roundings::sum});
    agree<Norm, In, double>({.batch = batch, .roundings = Roundings::sum});
    agree<NormThenRelu<Norm>, sk::nn::RectifiedBatchNorm<Norm>, In, float>({.batch = batch, .roundings = Roundings::sum});
    agree<NormThenRelu<Norm>, sk::nn::RectifiedBatchNorm<Norm>, In, double>({.batch = batch, .roundings = Roundings::sum});
  }
  agree<Norm, In, float>({.batch = 0, .roundings = Roundings::sum});
  agree<Norm, In, float>({.batch = 4, .wants_dx = false, .accumulate = true, .roundings = Roundings::sum});
  agree<Norm, In, float>({.batch = 4, .accumulate = true, .roundings = Roundings::sum});
  agree<Norm, In, float>({.batch = 4, .phase = Phase::evaluation, .roundings = Roundings::sum});
  agree<NormThenRelu<Norm>, sk::nn::RectifiedBatchNorm<Norm>, In, float>(
      {.batch = 4, .phase = Phase::evaluation, .roundings = Roundings::sum});
}
}  // namespace

TEST_CASE("BatchNorm on Cuda is BatchNorm on the Cpu, alone and with a Relu behind it", "[cuda]") {
  agrees<BatchNorm<>, Shape<5>>();
  agrees<BatchNorm<sk::Epsilon<1, 1000>, sk::Momentum<1, 3>>, Shape<16>>();
  agrees<BatchNorm<>, Shape<2, 2, 6>>();
  agrees<BatchNorm<sk::Epsilon<1, 1000>, sk::Momentum<1, 3>>, Shape<5, 3, 1>>();
  agrees<BatchNorm<>, Shape<3, 4, 41>>();
  agrees<BatchNorm<>, Shape<4, 3>>();
}

TEST_CASE("BatchNorm on Cuda is the same one value at a time and in packs", "[cuda]") {
  for (const bool plain : {false, true}) {
    const sk::cuda::PlainKernels kernels(plain);
    agree<NormThenRelu<BatchNorm<>>, sk::nn::RectifiedBatchNorm<BatchNorm<>>, Shape<7, 5, 12>, float>(
        {.batch = 5, .roundings = Roundings::sum});
    agree<NormThenRelu<BatchNorm<>>, sk::nn::RectifiedBatchNorm<BatchNorm<>>, Shape<7, 5, 12>, double>(
        {.batch = 3, .roundings = Roundings::sum});
    agree<BatchNorm<>, Shape<19>, float>({.batch = 37, .roundings = Roundings::sum});  // gaps behind 19 channels
  }
}

TEST_CASE("BatchNorm's backward on Cuda follows running statistics in evaluation", "[cuda]") {
  LayerHarness<BatchNorm<>, Shape<3, 2, 5>> here(4);
  LayerHarness<BatchNorm<>, Shape<3, 2, 5>, double, Cuda> there(4);
  here.context.phase = there.context.phase = sk::nn::Phase::evaluation;
  for (long i = 0; i < here.buffers.size(); ++i) here.buffers[i] = there.buffers[i] = 0.3 + 0.01 * static_cast<double>(i);
  here.forward(), there.forward();
  here.backward(), there.backward();
  for (long i = 0; i < 4 * here.in_count; ++i) CHECK(there.dx[i] == Approx(here.dx[i]));
  for (long i = 0; i < 5; ++i) CHECK(there.gradient_at(0, i) == Approx(here.gradient_at(0, i)));
  for (long i = 0; i < 5; ++i) CHECK(there.gradient_at(1, i) == Approx(here.gradient_at(1, i)));
}

TEST_CASE("BatchNorm on Cuda: several blocks of rows", "[cuda]") {
  agree<BatchNorm<>, Shape<16, 17, 3>, float>({.batch = 7, .roundings = Roundings::product});
  agree<BatchNorm<>, Shape<16, 17, 3>, double>({.batch = 7, .roundings = Roundings::product});
}

namespace {
struct TwiceOf {
  double* values;
  constexpr void operator()(long i) const { values[i] *= 2; }
};
/// A second rank with the same data: its sums are added on the device.
void twin(void* calls, double* values, long n) {
  ++*static_cast<int*>(calls);
  sk::cuda::for_each(n, TwiceOf{values});
}
}  // namespace

TEST_CASE("BatchNorm's statistics on Cuda are those of all ranks where a policy sums them, on the device", "[cuda]") {
  const auto check = [](auto alone, auto with) {
    int calls = 0;
    with.context.statistics_hook = twin;
    with.context.hook = &calls;
    for (int step = 0; step < 2; ++step) {
      alone.forward(), with.forward();
      alone.backward(), with.backward();
    }
    CHECK(calls == 4);  // forward and backward
    for (long i = 0; i < alone.in_count; ++i) CHECK(with.y_at(3, i) == Approx(alone.y_at(3, i)).epsilon(1e-5).margin(1e-5));
    for (long i = 0; i < alone.in_count; ++i) CHECK(with.dx_at(3, i) == Approx(alone.dx_at(3, i)).epsilon(1e-4).margin(1e-5));
    for (long i = 0; i < 5; ++i) CHECK(with.gradient_at(0, i) == Approx(alone.gradient_at(0, i)).epsilon(1e-4).margin(1e-5));
  };
  using Layer = BatchNorm<>;
  check(LayerHarness<Layer, Shape<5>, double, Cuda>(6), LayerHarness<Layer, Shape<5>, double, Cuda>(6));
  check(LayerHarness<Layer, Shape<3, 4, 5>, float, Cuda>(6), LayerHarness<Layer, Shape<3, 4, 5>, float, Cuda>(6));
}

TEST_CASE("where cuDNN refuses a batch norm that it has planned, own kernels run", "[cuda]") {
  namespace cudnn = sk::ops::cudnn;
  using Direction = cudnn::BatchNorm::Direction;
  CHECK(cudnn::supported(CUDNN_STATUS_SUCCESS, "a call"));
  CHECK_FALSE(cudnn::supported(CUDNN_STATUS_NOT_SUPPORTED, "a call"));
  CHECK_FALSE(cudnn::supported(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "a call"));
  CHECK_THROWS_AS(cudnn::supported(CUDNN_STATUS_BAD_PARAM, "a call"), sk::DeviceError);

  const cudnn::BatchNorm six(6, 15, 7, CUDNN_DATA_FLOAT), seven(7, 15, 7, CUDNN_DATA_FLOAT);
  REQUIRE(six.has(Direction::forward) == six.has(Direction::backward));
  six.refuse(Direction::forward);  // backward stays cuDNN's: it reads what own kernels have left
  CHECK_FALSE(six.has(Direction::forward));
  CHECK(six.has(Direction::backward) == seven.has(Direction::forward));
  agree<BatchNorm<>, Shape<5, 3, 7>, float>({.batch = 6, .roundings = Roundings::sum});
  seven.refuse(Direction::backward);  // and the other way round
  agree<BatchNorm<>, Shape<5, 3, 7>, float>({.batch = 7, .accumulate = true, .roundings = Roundings::sum});
  six.refuse(Direction::backward);
  agree<BatchNorm<>, Shape<5, 3, 7>, float>({.batch = 6, .accumulate = true, .roundings = Roundings::sum});
}
