// SPDX-License-Identifier: Apache-2.0
// Where a Sequential puts its edges and their gradients: what is kept, what is made again, which arrays are shared; and that all
// of it leaves the bits as they are, for any number of workers, in pipelines and under K-FAC.
#include <catch2/catch.hpp>

#include <skein/comm/self/self_comm.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/models/cifar_resnet.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/data/batch.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/train_step.hpp>

#include "../support/fused_networks.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using nn::BatchNorm, nn::Conv2d, nn::Linear, nn::Relu, nn::Sequential;

namespace {
template <int F> using Conv = Conv2d<F, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>;
using Image = sk::Shape<10, 10, 3>;
template <class Network, class In> constexpr nn::MemoryRequirements host = nn::analyze<nn::Fused<Network, sk::Cpu>>(In::extents);

// What is behind another Sequential is kept, with the same kernels: `Kept` of the same layers has the memory of before.
template <bool Kept, class... Ls> using Part = std::conditional_t<Kept, Sequential<Sequential<Ls...>>, Sequential<Ls...>>;
template <class... Parts> struct Joined;
template <class... As> struct Joined<Sequential<As...>> { using type = Sequential<As...>; };
template <class... As, class... Bs, class... Rest> struct Joined<Sequential<As...>, Sequential<Bs...>, Rest...>
    : Joined<Sequential<As..., Bs...>, Rest...> {};
template <class... Parts> using Join = typename Joined<Parts...>::type;

template <bool Kept, int F> using Unit = Part<Kept, Conv<F>, BatchNorm<>, Relu>;
template <bool Kept> using Direct = Join<Unit<Kept, 16>, Unit<Kept, 16>, Unit<Kept, 8>, Sequential<nn::GlobalAvgPool, Linear<3>>>;
template <bool Kept> using Library = Join<Unit<Kept, 40>, Unit<Kept, 48>, Unit<Kept, 40>, Sequential<nn::Flatten, Linear<3>>>;
// A normalisation in front of the convolution: its output is made from its input, unless that is made again itself.
template <bool Kept> using Before = Join<Part<Kept, BatchNorm<>, Relu>, Sequential<Conv<12>, nn::Identity>,
                                         Part<Kept, BatchNorm<>, Relu>, Sequential<Conv<4>, nn::GlobalAvgPool>>;
template <bool Kept> using Twice = Join<Part<Kept, Conv<12>, BatchNorm<>>, Sequential<nn::Identity>,
                                        Part<Kept, BatchNorm<>, Relu>, Sequential<Conv<4>, nn::GlobalAvgPool>>;
template <bool Kept> using Flat = Join<Sequential<Linear<20>>, Part<Kept, BatchNorm<>, Relu>, Sequential<Linear<33>>,
                                       Part<Kept, BatchNorm<>, Relu>, Sequential<Linear<5>>>;

template <class Network, class In, class Precision = float, class Optimizer = sk::optim::Sgd>
std::vector<float> trained(int threads, const Optimizer& optimizer = {.lr = 0.1f, .momentum = 0.9}) {
  using Model = sk::Model<Network, In, sk::Cpu, Precision>;
  Model model{sk::Seed{7}};
  sk::train::TrainStep step{model, nn::Mse{}, optimizer, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 11, .threads = threads});
  const support::Batch<In, float, Model::output_extents.count()> batch(11);
  for (int i = 0; i < 4; ++i) step.step(batch.view());
  std::vector<float> values(model.parameters().begin(), model.parameters().end());
  values.insert(values.end(), model.buffers().begin(), model.buffers().end());
  return values;
}
template <template <bool> class Network, class In, class Precision = float> void same_bits() {
  for (const int threads : {1, 2, 3}) {
    INFO(threads << " threads");
    CHECK(trained<Network<false>, In, Precision>(threads) == trained<Network<true>, In, Precision>(threads));
  }
}
}  // namespace

TEST_CASE("The output of a normalisation is made again in backward, not kept", "[nn]") {
  STATIC_REQUIRE(host<Direct<false>, Image>.kept_activations == 16);  // what Linear reads
  STATIC_REQUIRE(host<Direct<true>, Image>.kept_activations == 16 + 100 * (16 + 16));
  STATIC_REQUIRE(host<Library<false>, Image>.kept_activations == 0);
  STATIC_REQUIRE(host<Before<false>, Image>.kept_activations == 100 * 12);  // the input of the second
  STATIC_REQUIRE(host<Twice<false>, Image>.kept_activations == 100 * 12);   // either the input of BatchNorm or its output
  STATIC_REQUIRE(host<Twice<true>, Image>.kept_activations == 2 * 100 * 12);
  STATIC_REQUIRE(host<Flat<false>, sk::Shape<16>>.kept_activations == sk::row_pitch(20) + sk::whole_line(33));
  STATIC_REQUIRE(host<Flat<true>, sk::Shape<16>>.kept_activations == 2 * (sk::row_pitch(20) + sk::whole_line(33)));
  // A block of ResNet keeps its output alone, beside what its convolutions keep; the first convolution keeps none.
  using Deep = sk::models::CifarResNet<20>;
  constexpr auto all = host<Deep, sk::Shape<32, 32, 3>>;
  STATIC_REQUIRE(all.kept_activations == 1024 * (3 * 16 + 3 * 8 + 3 * 4) + 64);
}

TEST_CASE("What is made again has the bits of what was kept", "[nn]") {
  same_bits<Direct, Image>();
  same_bits<Library, Image>();
  same_bits<Before, Image>();
  same_bits<Twice, Image>();
  same_bits<Flat, sk::Shape<16>>();
  same_bits<Direct, Image, sk::precision::bf16>();
}

TEST_CASE("K-FAC finds the inputs that are made again", "[nn]") {
  const auto kfac =
      sk::optim::chain(sk::optim::Kfac{.damping = 0.01, .factor_every = 1, .inverse_every = 2}, sk::optim::Sgd{.lr = 0.05f});
  for (const int threads : {1, 2})
    CHECK(trained<Direct<false>, Image, float>(threads, kfac) == trained<Direct<true>, Image, float>(threads, kfac));
}

TEST_CASE("A pipeline leaves no half of backward for later that would read what is made again", "[nn]") {
  using Front = Sequential<Conv<40>, BatchNorm<>, Relu>;
  using Behind = Sequential<Conv<40>, BatchNorm<>, Relu, nn::Flatten, Linear<3>>;
  const auto trained = [](sk::parallel::PipelineSchedule schedule) {
    sk::SelfComm self;
    const sk::parallel::Pipeline<Front, Behind> pipeline{self, {.schedule = schedule, .micro_batches = 4}};
    auto model = pipeline.template model<Image>(sk::Seed{7});
    sk::parallel::PipelineTrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, pipeline};
    step.reserve({.capacity = 12, .threads = 2});
    const support::Batch<Image, float, 3> samples(12);
    sk::data::Batch<float> batch;
    batch.x = samples.view().x;
    batch.pitch = samples.view().pitch;
    batch.targets = samples.view().targets;
    batch.target_pitch = samples.view().target_pitch;
    batch.count = batch.global_count = 12;
    for (int i = 0; i < 3; ++i) step.step(batch);
    const auto weights = model.parameters(1);
    return std::vector<float>(weights.begin(), weights.end());
  };
  CHECK(trained(sk::parallel::PipelineSchedule::zero_bubble) == trained(sk::parallel::PipelineSchedule::gpipe));
}

TEST_CASE("Layers that divide their gradients share two arrays, where their rows are as long", "[nn]") {
  using Wide = Linear<512>;
  using Deep = Sequential<Wide, Relu, Wide, Relu, Wide, Relu, Wide, Relu, Wide, Relu, Linear<10>>;
  STATIC_REQUIRE(host<Deep, sk::Shape<256>>.whole_gradients == 2 * sk::row_pitch(512));
  using Uneven = Sequential<Wide, Relu, Linear<400>, Relu, Wide, Relu, Linear<10>>;
  STATIC_REQUIRE(host<Uneven, sk::Shape<256>>.whole_gradients == sk::row_pitch(512) + sk::row_pitch(400));
  const std::vector<float> one = trained<Deep, sk::Shape<256>>(1);
  for (const int threads : {2, 3, 4}) {
    const std::vector<float> many = trained<Deep, sk::Shape<256>>(threads);
    CHECK(support::apart(std::vector<double>(many.begin(), many.end()), std::vector<double>(one.begin(), one.end())) < 1e-5);
    for (int again = 0; again < 5; ++again) CHECK(trained<Deep, sk::Shape<256>>(threads) == many);
  }
}

TEST_CASE("A layer whose input each worker makes again does not divide its gradient", "[nn]") {
  using Wide = Linear<256>;
  using Leaf = Sequential<Wide, BatchNorm<>, Relu, Wide, Relu, Linear<3>>;
  using Inside = Sequential<Wide, BatchNorm<>, Relu, nn::Recompute<Sequential<Wide, nn::Tanh, Linear<300>>>, Wide, Linear<3>>;
  const auto apart = []<class Network>(Network, int threads) {
    using In = sk::Shape<64>;
    const auto one = support::run_network<Network, In, double>({.capacity = 11, .threads = 1});
    return support::apart(support::run_network<Network, In, double>({.capacity = 11, .threads = threads}).gradients,
                          one.gradients);
  };
  for (const int threads : {2, 3}) {
    CHECK(apart(Leaf{}, threads) < 1e-12);
    CHECK(apart(Inside{}, threads) < 1e-12);
  }
}

TEST_CASE("Only arrays that some edge or gradient takes are there", "[nn]") {
  STATIC_REQUIRE(host<Sequential<Linear<512>, Relu, Linear<512>, Relu, Linear<10>>, sk::Shape<256>>.scratch == 0);
  STATIC_REQUIRE(host<Sequential<Linear<30>, nn::Tanh>, sk::Shape<4>>.scratch == 0);  // one layer
  STATIC_REQUIRE(host<Sequential<Linear<30>, Linear<70>, Linear<7>>, sk::Shape<4>>.scratch ==
                 sk::whole_line(30) + sk::whole_line(70));
}
