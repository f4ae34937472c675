// SPDX-License-Identifier: Apache-2.0
// Whole networks against PyTorch, through the TrainStep: LeNet-5 with Sgd, a strided CNN with BatchNorm and Adam, a perceptron
// with LayerNorm, Gelu and AdamW. The first step's loss and gradients, the losses of 100 steps, and the loss in evaluation phase.
// Gradients are compared by their products with three fixed vectors, so that an element in the wrong place shows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <skein/data/batch.hpp>
#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include "../fixtures/networks.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace fixture = fixtures::networks;

namespace {

using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
using Cnn = nn::Sequential<nn::Conv2d<5, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::BatchNorm<>, nn::Relu,
                           nn::MaxPool2d<3, sk::Stride<2>>, nn::Conv2d<8, sk::Kernel<3>>, nn::Relu, nn::AvgPool2d<2>, nn::Flatten,
                           nn::Linear<10>>;
using Mlp = nn::Sequential<nn::Linear<32>, nn::LayerNorm<>, nn::Gelu, nn::Linear<10>>;

/// What make_networks.py wrote of one network.
struct Expected {
  const std::vector<double>&projections, &norms, &losses, &evaluation;
};

/// Value `index` of stream `salt`, within (-scale, scale): as draw() of make_networks.py, to the bit.
float draw(long index, int salt, double scale) {
  auto h = static_cast<std::uint32_t>(index + salt * 1000003L);
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  h ^= h >> 16;
  const double steps = static_cast<double>(h >> 8) - (8388608 - 0.5);
  return static_cast<float>(steps * (scale / 8388608));
}

/// Calls visit(parameter, logical index, stored index) for every element of every parameter.
template <class Model, class Visit> void each_element(Visit&& visit) {
  int p = 0;
  for (const sk::plan::Entry& e : Model::program.parameters()) {
    const long columns = e.extents.last();
    for (long i = 0; i < e.extents.count(); ++i) visit(p, e, i, e.offset + i / columns * sk::row_pitch(columns) + i % columns);
    ++p;
  }
}

template <class Model> void set_parameters(Model& model) {
  using Scalar = typename Model::Scalar;
  const auto lease = model.modify();
  Scalar* values = lease.data();
  each_element<Model>([&](int p, const sk::plan::Entry& e, long i, long at) {
    const double scale = e.fan_in > 0 ? 1 / std::sqrt(static_cast<double>(e.fan_in)) : 0.25;  // else a normalisation
    const double center = e.init == static_cast<int>(nn::Init::ones) ? 1 : 0;
    values[at] = static_cast<Scalar>(static_cast<float>(static_cast<double>(draw(i, p + 1, scale)) + center));
  });
}

/// The samples and labels of make_networks.py, in memory of their own.
template <class Model> struct Samples {
  using Scalar = typename Model::Scalar;
  static constexpr long pitch = sk::sample_pitch(Model::input::extents), length = Model::input::count;
  sk::Arena<Scalar, sk::Cpu> x;
  std::vector<std::int32_t> labels;

  explicit Samples(long count) : x(static_cast<std::size_t>(count * pitch)), labels(static_cast<std::size_t>(count)) {
    for (long i = 0; i < count; ++i) {
      labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((7 * i + 3) % 10);
      for (long k = 0; k < length; ++k) x.data()[i * pitch + k] = static_cast<Scalar>(draw(i * length + k, 100, 1));
    }
  }
  sk::data::Batch<Scalar> batch() const {
    sk::data::Batch<Scalar> b;
    b.x = x.data();
    b.pitch = pitch;
    b.sample = Model::input::extents;
    b.labels = labels.data();
    b.count = b.global_count = static_cast<long>(labels.size());
    return b;
  }
};

/// |a - b| over |b|, or over `floor` where b is less: to be below a tolerance.
double apart(double a, double b, double floor = 0) { return std::abs(a - b) / std::max(std::abs(b), floor); }

/// Projections of the gradients in the arena, of worker 0: the whole gradient where there is no other.
template <class Model> void check_gradients(const Model& model, const Expected& expected, double tolerance) {
  const int parameters = static_cast<int>(Model::program.parameters().size());
  std::vector<double> projections(static_cast<std::size_t>(3 * parameters)), squares(static_cast<std::size_t>(parameters));
  each_element<Model>([&](int p, const sk::plan::Entry&, long i, long at) {
    const double g = static_cast<double>(model.gradients().data[at]);
    for (int k = 0; k < 3; ++k)
      projections[static_cast<std::size_t>(3 * p + k)] += g * std::cos(static_cast<double>((k + 1) * (i + 1)));
    squares[static_cast<std::size_t>(p)] += g * g;
  });
  REQUIRE(projections.size() == expected.projections.size());
  double largest = 0;
  for (double n : expected.norms) largest = std::max(largest, n);
  for (std::size_t k = 0; k < projections.size(); ++k) {
    const std::size_t p = k / 3;
    // A bias before BatchNorm has a gradient of zero, to rounding: what cancels in it is of the size of the other gradients.
    const double scale = std::max(expected.norms[p], 0.01 * largest);
    INFO("parameter " << p << ", vector " << k % 3 + 1 << ": " << projections[k] << " for " << expected.projections[k]
                      << ", apart by " << projections[k] - expected.projections[k] << ", norm " << expected.norms[p]);
    CHECK(apart(projections[k], expected.projections[k], scale) <= tolerance);
    CHECK(apart(std::sqrt(squares[p]), expected.norms[p], scale) <= tolerance);
  }
}

template <class Net, class Input, class Scalar, class Optimizer>
void follows(const Optimizer& optimizer, long count, int threads, const Expected& expected) {
  using Model = sk::Model<Net, Input, sk::Cpu, Scalar>;
  constexpr bool exact = std::is_same_v<Scalar, double>;
  constexpr double first = exact ? 1e-10 : 1e-5, later = exact ? 1e-8 : 1e-4;
  constexpr double small = 1e-3;  // a lesser loss is a difference of logits that are 10,000 times as great
  INFO((exact ? "double, " : "float, ") << "threads: " << threads);
  Model model;
  set_parameters(model);
  const Samples<Model> samples(count);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, optimizer, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = count, .threads = threads});

  const std::size_t steps = exact ? expected.losses.size() : 20;
  REQUIRE(expected.losses.size() == 100);
  for (std::size_t k = 0; k < steps; ++k) {
    const double loss = train_step.step(samples.batch()).mean(), off = apart(loss, expected.losses[k], small);
    INFO("step " << k << ": " << loss << " for " << expected.losses[k] << ", apart by " << loss - expected.losses[k]);
    CHECK(off <= (k == 0 ? first : later));
    if (k == 0 && threads == 1) check_gradients(model, expected, first);
  }
  if (exact) CHECK(apart(train_step.evaluate(samples.batch()).mean(), expected.evaluation[0], small) <= later);
}

template <class Net, class Input, class Optimizer>
void follows(const Optimizer& optimizer, long count, const Expected& expected) {
  for (int threads : {1, 2}) {
    follows<Net, Input, double>(optimizer, count, threads, expected);
    follows<Net, Input, float>(optimizer, count, threads, expected);
  }
}

}  // namespace

TEST_CASE("LeNet-5 with momentum trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<LeNet, sk::Shape<28, 28, 1>>(sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}, 8,
                                       {lenet_projections, lenet_norms, lenet_losses, lenet_evaluation});
}

TEST_CASE("a strided CNN with BatchNorm and Adam trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<Cnn, sk::Shape<24, 24, 3>>(sk::optim::Adam{.lr = 1e-3f}, 6, {cnn_projections, cnn_norms, cnn_losses, cnn_evaluation});
}

TEST_CASE("a perceptron with LayerNorm, Gelu and AdamW trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<Mlp, sk::Shape<20>>(sk::optim::AdamW{.lr = 1e-3f, .weight_decay = 0.05f}, 8,
                              {mlp_projections, mlp_norms, mlp_losses, mlp_evaluation});
}
