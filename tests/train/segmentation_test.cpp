// SPDX-License-Identifier: Apache-2.0
// A class for each pixel, from label images to the accuracy; and the layers of such networks on any number of workers and ranks.
#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/models/unet.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/rms_norm.hpp>
#include <skein/nn/summary.hpp>
#include <skein/nn/upsample.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/tensor/tensor.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/trainer.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr long side = 16;

/// Noise with one bright and one dark square on it: background 0, bright 1, dark 2.
struct Squares {
  sk::Tensor<float, 4> images;
  sk::Tensor<std::uint8_t, 3> labels;
  Squares(long count, std::uint64_t seed) : images(sk::dims(count, side, side, 1)), labels(sk::dims(count, side, side)) {
    std::uint64_t drawn = 0;
    const auto uniform = [&] { return sk::random_uniform(seed, 5, drawn++); };
    for (long i = 0; i < count; ++i) {
      for (long p = 0; p < side * side; ++p) {
        images.data()[i * side * side + p] = uniform() - 0.5f;
        labels.data()[i * side * side + p] = 0;
      }
      for (const std::uint8_t kind : {std::uint8_t(1), std::uint8_t(2)}) {
        const long edge = 4 + static_cast<long>(uniform() * 4),
                   top = static_cast<long>(uniform() * static_cast<float>(side - edge)),
                   left = static_cast<long>(uniform() * static_cast<float>(side - edge));
        for (long r = top; r < top + edge; ++r)
          for (long c = left; c < left + edge; ++c) {
            labels(i, r, c) = kind;
            images(i, r, c, 0) = uniform() - 0.5f + (kind == 1 ? 0.7f : -0.7f);
          }
      }
    }
  }
  auto set() const { return sk::data::from_tensors(images, labels); }
};

static_assert(sk::Model<sk::models::UNet<2>, sk::Shape<32, 32, 1>>::parameter_count == 117'090);

/// One of each layer that makes or enlarges images, and of the normalisations that do not couple the batch.
struct Small : nn::Sequential<nn::Conv2d<8, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::GroupNorm<4>, nn::Relu,
                              nn::Residual<nn::Conv2d<8, sk::Kernel<3>, sk::Padding<1>, sk::Groups<8>>>,  // depthwise
                              nn::ConvTranspose2d<6, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>, sk::OutputPadding<1>>,
                              nn::RmsNorm<>, nn::MaxPool2d<2>, nn::Upsample<2, sk::Bilinear>, nn::Conv2d<3, sk::Kernel<1>>> {};

/// Convolutions along one and three dimensions.
struct Along : nn::Sequential<nn::Reshape<side, side>, nn::Conv1d<24, sk::Kernel<3>, sk::Padding<1>>, nn::Relu,
                              nn::Reshape<4, 4, 8, 3>, nn::Conv3d<6, sk::Kernel<3>, sk::Padding<1>>, nn::Reshape<side, side, 3>> {
};

template <class Net, class Policy = sk::parallel::SingleProcess>
std::vector<double> losses(const Squares& squares, int threads, Policy policy = {}) {
  sk::Model<Net, sk::Shape<side, side, 1>> model{sk::Seed{7}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.01f}, policy};
  const sk::History history =
      trainer.fit(squares.set(), {.epochs = 2, .batch = 8, .record_steps = true, .progress = false, .threads = threads});
  auto all = history.losses();
  for (const auto& e : history.epochs()) all.push_back(e.training.accuracy);
  return all;
}
void same(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-4));
}
}  // namespace

TEST_CASE("A U-Net learns a class for each pixel, from label images to the accuracy", "[train]") {
  const Squares squares(96, 1), unseen(32, 2);
  // [quote segmentation]
  const auto training = sk::data::from_tensors(squares.images, squares.labels);  // (n, 16, 16, 1) with labels (n, 16, 16)
  const auto test = sk::data::from_tensors(unseen.images, unseen.labels);
  sk::Model<sk::models::UNet<3, 8>, sk::Shape<16, 16, 1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
  const sk::History history = trainer.fit(training, {.epochs = 6,
                                                     .batch = 8,
                                                     .validate = test,
                                                     .metrics = {sk::train::Accuracy{}},  // of pixels
                                                     .progress = false,
                                                     .threads = 2});
  // [end]
  const auto& last = history.epochs().back();
  INFO("loss " << last.validation.loss << ", accuracy " << last.validation.accuracy);
  CHECK(last.validation.accuracy > 0.93);
  CHECK(last.validation["accuracy"] == Approx(last.validation.accuracy));
  CHECK(last.training.loss < 0.3 * history.epochs().front().training.loss);

  const auto logits = trainer.predict(test);  // (32, 16 * 16 * 3)
  REQUIRE(logits.extent(1) == side * side * 3);
  long right = 0;
  for (long i = 0; i < 32; ++i)
    for (long p = 0; p < side * side; ++p) {
      const float* of_pixel = &logits(i, 3 * p);
      right += std::max_element(of_pixel, of_pixel + 3) - of_pixel == unseen.labels.data()[i * side * side + p];
    }
  CHECK(static_cast<double>(right) / (32 * side * side) == Approx(last.validation.accuracy).margin(1e-3));
}

TEST_CASE("Label images as a plain list are those of a tensor; another number of labels is refused", "[train]") {
  const Squares squares(4, 3);
  const std::vector<float> x(squares.images.data(), squares.images.data() + squares.images.size());
  std::vector<int> labels(squares.labels.data(), squares.labels.data() + squares.labels.size());
  const auto plain = sk::data::from_tensors(x, sk::Extents{3, {16, 16, 1}}, labels);
  CHECK(plain.target() == squares.set().target());
  CHECK(plain.label(2, 77) == squares.set().label(2, 77));
  labels.pop_back();
  CHECK_THROWS_WITH(sk::data::from_tensors(x, sk::Extents{3, {16, 16, 1}}, labels), Catch::Contains("4 samples need"));
  sk::Model<sk::models::UNet<3, 4, 1>, sk::Shape<16, 16, 1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  const auto wrong = sk::data::from_tensors(x, sk::Extents{3, {16, 16, 1}}, std::vector<int>(4));
  CHECK_THROWS_WITH(trainer.fit(wrong, {.batch = 4, .progress = false}),
                    Catch::Contains("1 labels a sample") && Catch::Contains("has 256 positions"));
}

TEST_CASE("Networks of pixels have the same losses on any number of workers and ranks", "[train]") {
  const Squares squares(32, 4);
  const auto small = losses<Small>(squares, 1), along = losses<Along>(squares, 1),
             unet = losses<sk::models::UNet<3, 4, 2, nn::GroupNorm<2>>>(squares, 1);
  for (const int threads : {2, 4}) {
    same(losses<Small>(squares, threads), small);
    same(losses<Along>(squares, threads), along);
    same(losses<sk::models::UNet<3, 4, 2, nn::GroupNorm<2>>>(squares, threads), unet);
  }
  for (const int ranks : {2, 3})
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      const auto found = losses<Small>(squares, 1, sk::parallel::DataParallel{world}),
                 found_along = losses<Along>(squares, 1, sk::parallel::DataParallel{world});
      if (world.rank() != 0) return;
      same(found, small);
      same(found_along, along);
    });
}

TEST_CASE("Checkpoints, names and the summary know the layers", "[train]") {
  const support::TemporaryFolder folder;
  using Model = sk::Model<Small, sk::Shape<side, side, 1>>;
  static_assert(Model::parameter("1.weight").extents == sk::Extents{1, {8}});
  static_assert(Model::parameter("4.weight").extents == sk::Extents{4, {3, 3, 6, 8}});
  const Squares squares(8, 5);
  Model model{sk::Seed{1}}, other{sk::Seed{2}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(squares.set(), {.epochs = 1, .batch = 4, .progress = false});
  trainer.save(folder / "state");
  sk::Trainer second{other, nn::CrossEntropy{}, sk::optim::Adam{}};
  second.load(folder / "state");
  CHECK(trainer.evaluate(squares.set()).loss == second.evaluate(squares.set()).loss);
  const std::string text = sk::summary(model);
  for (const char* name : {"GroupNorm<4>", "RmsNorm<>", "ConvTranspose2d<6", "Upsample<2"})
    CHECK(text.find(name) != std::string::npos);
}
