// SPDX-License-Identifier: Apache-2.0
// Kfac of networks whose activations have 16 bits: factors are sums in float of what the layers see and hand back, whatever the
// loss is scaled by; trainings are as good as in float.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Images = sk::Shape<6, 6, 2>;
using Convolutional = nn::Sequential<nn::Conv2d<4, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>, nn::BatchNorm<>, nn::Relu,
                                     nn::Flatten, nn::Linear<16>, nn::Tanh, nn::Linear<3>>;
using Sequences = sk::Shape<6, 12>;
using Gated = nn::Sequential<nn::Gru<8, sk::LastState>, nn::Linear<3>>;
constexpr long count = 600, width = 72;  // several blocks of converted samples

/// Eighths, which have no error in 16 bits; the label is in them.
struct Samples {
  std::vector<float> x = std::vector<float>(count * sk::row_pitch(width));
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(count);
  Samples() {
    for (long i = 0; i < count; ++i) {
      labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % 3);
      for (long k = 0; k < width; ++k) {
        const float noise = sk::random_uniform(3, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(k));
        x[static_cast<std::size_t>(i * width + k)] = std::round(8 * noise - 4 + (k % 3 == i % 3 ? 3.0f : 0.0f)) / 8;
      }
    }
  }
  sk::BatchView<float> part(int rank, int ranks) const {
    const long each = count / ranks;
    return {.x = x.data() + rank * each * width,
            .pitch = width,
            .labels = labels.data() + rank * each,
            .count = each,
            .global_count = count};
  }
};

struct Outcome {
  std::vector<std::vector<float>> factors;  ///< after the first step: A before G
  std::vector<double> losses;
};
/// Ten steps; of fp16 with the loss multiplied by `scale`.
template <class Net, class In, class Precision, class Policy = sk::parallel::SingleProcess>
Outcome train(int threads, double scale = 1024, const Policy& policy = {}, int rank = 0, int ranks = 1) {
  static const Samples samples;
  sk::Model<Net, In, sk::Cpu, Precision> model{sk::Seed{3}};
  const optim::Kfac kfac{
      .inverse_every = 2, .inverse = optim::KfacInverse::cholesky, .unit_wise = true, .factor_bias_correction = true};
  sk::train::TrainStep step{model, nn::CrossEntropy{}, optim::chain(kfac, optim::Sgd{.lr = 0.05f, .momentum = 0.9}), policy};
  step.reserve({.capacity = count / ranks, .threads = threads});
  if constexpr (std::same_as<Precision, sk::precision::fp16>) step.set_loss_scaling(optim::LossScaling::fixed(scale));
  Outcome r;
  for (int i = 0; i < 10; ++i) {
    r.losses.push_back(step.step(samples.part(rank, ranks)).mean());
    for (std::size_t k = 0; i == 0 && k < step.curvature().layers(); ++k)
      for (const auto f : {step.curvature().factor_a(k), step.curvature().factor_g(k)})
        r.factors.emplace_back(f.begin(), f.end());
  }
  return r;
}
/// |a - b| / |b|
double apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}
void check(const Outcome& half, const Outcome& wide, double tolerance) {
  REQUIRE(half.factors.size() == wide.factors.size());
  for (std::size_t k = 0; k < wide.factors.size(); ++k) {
    INFO("factor " << k);
    CHECK(apart(half.factors[k], wide.factors[k]) < (k == 0 ? 1e-5 : tolerance));  // of the samples themselves
  }
  for (std::size_t i = 0; i < 4; ++i) CHECK(half.losses[i] == Approx(wide.losses[i]).epsilon(0.05));
  CHECK(half.losses.back() < 1.1 * wide.losses.back() + 0.05);
  CHECK(wide.losses.back() < 0.7 * wide.losses.front());
}
}  // namespace

TEST_CASE("Kfac of activations of 16 bits has float's factors, and trains as well", "[optim]") {
  for (const int threads : {1, 2}) {
    const Outcome images = train<Convolutional, Images, float>(threads);
    check(train<Convolutional, Images, sk::precision::bf16>(threads), images, 0.05);
    for (const double scale : {1.0, 1024.0})
      check(train<Convolutional, Images, sk::precision::fp16>(threads, scale), images, 0.01);
  }
  check(train<Gated, Sequences, sk::precision::bf16>(2), train<Gated, Sequences, float>(2), 0.05);
}

TEST_CASE("Kfac of activations of 16 bits over ranks has the factors of one process", "[optim]") {
  const Outcome alone = train<Convolutional, Images, sk::precision::bf16>(1);
  std::vector<Outcome> all(3);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    all[static_cast<std::size_t>(world.rank())] = train<Convolutional, Images, sk::precision::bf16>(
        1, 1, sk::parallel::DataParallel{world, sk::parallel::SyncBatchNorm{}}, world.rank(), world.size());
  });
  for (const Outcome& other : all) {
    check(other, alone, 0.01);
    CHECK(other.factors == all[0].factors);
  }
}

TEST_CASE("A step of fp16 that overflows leaves Kfac's factors as they were", "[optim]") {
  const Samples samples;
  sk::Model<Convolutional, Images, sk::Cpu, sk::precision::fp16> model{sk::Seed{3}};
  sk::train::TrainStep step{model, nn::CrossEntropy{}, optim::chain(optim::Kfac{}, optim::Sgd{.lr = 0.05f}),
                            sk::parallel::SingleProcess{}};
  step.reserve({.capacity = count, .threads = 1});
  const auto factors = [&] {
    const std::span<const float> f = step.curvature().factor_g(0);
    return std::vector<float>(f.begin(), f.end());
  };
  const std::vector<float> before = factors();
  step.set_loss_scaling(optim::LossScaling::fixed(1e9));
  step.step(samples.part(0, 1));
  CHECK(step.steps() == 0);
  CHECK(factors() == before);
  step.set_loss_scaling(optim::LossScaling::fixed(64));
  step.step(samples.part(0, 1));
  CHECK(step.steps() == 1);
  CHECK(factors() != before);
  CHECK(step.curvature().not_finite().empty());
}
