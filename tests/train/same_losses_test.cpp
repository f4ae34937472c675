// SPDX-License-Identifier: Apache-2.0
// One training of a residual network on 1, 2 and 4 ranks with the same global batch: crops, flips and dropout are those of the
// sample, and batch normalisation those of all ranks, so that the first 100 losses and the accuracy are those of one process. In
// double they are to rounding. In float the order of a sum now and then turns a ReLU whose input is near 0, in any library, and
// training multiplies the difference: a usual rate brings 1e-8 to 1e-3 within 100 steps, as two threads of one process do.
// ResNet-20 on CIFAR-10 therefore learns in double at a small rate: at ten times that, 1e-15 has become 1e-2 after 40 steps.
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/cifar10.hpp>
#include <skein/data/crop_and_flip.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/models/cifar_resnet.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/trainer.hpp>

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "../support/data_sets.hpp"
#include "../support/larger.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace models = skein::models;

namespace {
constexpr int side = 8, channels = 3, classes = 10;
constexpr long samples = 530, batch = 32;  // the last batch of an epoch has 18: ranks of four have five and four

/// Noise on waves that are the class's.
auto images(std::uint64_t key) {
  constexpr std::size_t numbers = side * side * channels;
  std::vector<float> x(samples * numbers);
  std::vector<std::int32_t> labels(samples);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t n = i / numbers, column = i / channels % side, row = i / (side * channels) % side;
    labels[n] = static_cast<std::int32_t>(n % classes);
    const float wave = std::sin(0.4f * static_cast<float>((1 + n % 5) * column + (n % classes / 5) * 3 * row));
    x[i] = 0.5f * wave + 1.5f * (sk::random_uniform(key, 0, i) - 0.5f);
  }
  return sk::data::from_tensors(x, sk::Extents{3, {side, side, channels}}, labels);
}

using Net =
    nn::Sequential<models::detail::PlainConv<16, 3, sk::Padding<1>>, nn::BatchNorm<>, nn::Relu,
                   nn::Repeat<2, models::detail::BasicBlock<16>>, models::detail::Halving<models::Shortcut::zero_padded, 32>,
                   nn::GlobalAvgPool, nn::Dropout<sk::Rate<1, 10>>, nn::Linear<classes>>;

struct Outcome {
  std::vector<double> losses;
  double accuracy = 0;
};
template <class Scalar, class Policy> Outcome train(const Policy& policy, float lr, int threads) {
  sk::Model<Net, sk::Shape<side, side, channels>, sk::Cpu, Scalar> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = lr, .momentum = 0.9, .weight_decay = 5e-4f}, policy};
  const auto seen = sk::data::map(images(1), sk::data::CropAndFlip{{side, side, channels}, 1, sk::Seed{7}});
  const auto history = trainer.fit(seen, {.epochs = 6,
                                          .batch = batch,
                                          .validate = images(2),
                                          .seed = sk::Seed{5},
                                          .record_steps = true,
                                          .progress = false,
                                          .threads = threads});
  return {history.losses(), history.back().validation.accuracy};
}
/// The largest difference of the first so many losses.
double apart(const Outcome& a, const Outcome& b, std::size_t steps) {
  REQUIRE(a.losses.size() == b.losses.size());
  REQUIRE(a.losses.size() >= steps);
  double largest = 0;
  for (std::size_t i = 0; i < steps; ++i) largest = support::larger(largest, a.losses[i] - b.losses[i]);
  return largest;
}
/// On 1, 2 and 4 ranks, what train(world) returns has the first losses of one process, so many, and its accuracy.
template <class Train> void ranks_train_as(const Outcome& alone, std::size_t steps, double tolerance, const Train& train) {
  for (const int ranks : {1, 2, 4}) {
    std::vector<Outcome> all(static_cast<std::size_t>(ranks));
    sk::spawn(ranks, [&](sk::ThreadComm& world) { all[static_cast<std::size_t>(world.rank())] = train(world); });
    INFO(ranks << " ranks; one process: accuracy " << alone.accuracy << ", loss 1 " << alone.losses.front() << ", loss " << steps
               << " " << alone.losses[steps - 1]);
    const double difference = apart(all[0], alone, steps);
    INFO("the largest difference of a loss is " << difference);
    CHECK(difference <= tolerance);
    CHECK(std::abs(all[0].accuracy - alone.accuracy) <= 0.002);
    for (const Outcome& other : all) CHECK(other.losses == all[0].losses);
  }
}
/// On 1, 2 and 4 ranks, of which every second has two workers: losses of one process, and the same accuracy.
template <class Scalar> void trains_alike(float lr, double tolerance, double learned) {
  const Outcome alone = train<Scalar>(sk::parallel::SingleProcess{}, lr, 1);
  CHECK(alone.losses[99] < learned * alone.losses[0]);
  ranks_train_as(alone, 100, tolerance, [&](sk::ThreadComm& world) {
    return train<Scalar>(sk::parallel::DataParallel{world, sk::parallel::SyncBatchNorm{}}, lr, 1 + world.rank() % 2);
  });
}

/// ResNet-20 on the first images of CIFAR-10, in double, with the usual crops, flips and weight decay: one epoch of so many
/// batches, and the accuracy on 64 images of the test set.
constexpr long images_each = 16, images_seen = 64;
template <class Policy> Outcome train_on_cifar(const sk::data::SourcedTrainTest& cifar, long steps, const Policy& policy) {
  using Net20 = models::CifarResNet<20>;
  sk::Model<Net20, Net20::input, sk::Cpu, double> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.002f, .momentum = 0.9, .weight_decay = 1e-4f}, policy};
  const auto cut = sk::data::map(cifar.train.take(steps * images_each), sk::data::CropAndFlip{.seed = sk::Seed{7}});
  const auto history = trainer.fit(sk::data::map(cut, sk::data::cifar10_channels),
                                   {.epochs = 1,
                                    .batch = images_each,
                                    .validate = sk::data::map(cifar.test.take(images_seen), sk::data::cifar10_channels),
                                    .seed = sk::Seed{5},
                                    .record_steps = true,
                                    .progress = false,
                                    .threads = 1});
  return {history.losses(), history.back().validation.accuracy};
}
/// The losses of the first steps on 1, 2 and 4 ranks are those of one process.
void trains_alike_on_cifar(long steps, double tolerance) {
  const auto cifar = support::cifar10_subset();
  if (!cifar) return;
  const Outcome alone = train_on_cifar(*cifar, steps, sk::parallel::SingleProcess{});
  REQUIRE(alone.losses.size() == static_cast<std::size_t>(steps));
  ranks_train_as(alone, alone.losses.size(), tolerance, [&](sk::ThreadComm& world) {
    return train_on_cifar(*cifar, steps, sk::parallel::DataParallel{world, sk::parallel::SyncBatchNorm{}});
  });
}
}  // namespace

TEST_CASE("A residual network with crops, flips and dropout has the losses and the accuracy of one process on 1, 2 and 4 ranks",
          "[train]") {
  trains_alike<double>(0.05f, 1e-9, 0.3);
  trains_alike<float>(0.001f, 1e-4, 0.95);
}

TEST_CASE("ResNet-20 on CIFAR-10 has the first losses of one process on 1, 2 and 4 ranks", "[train][cifar10]") {
  trains_alike_on_cifar(10, 1e-11);
}

TEST_CASE("ResNet-20 on CIFAR-10 has the first 100 losses of one process on 1, 2 and 4 ranks", "[train][cifar10][.long]") {
  trains_alike_on_cifar(100, 1e-10);
}
