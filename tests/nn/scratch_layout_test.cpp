// SPDX-License-Identifier: Apache-2.0
// Arrays that live at the same time lie apart; and what layers save may share its memory with scratch: a training is that
// where each has memory of its own, as in the stages of a pipeline.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/core/random.hpp>
#include <skein/data/batch.hpp>
#include <skein/nn/concat.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/models/cifar_resnet.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/scratch_layout.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/train_step.hpp>

#include "../support/fused_networks.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using nn::BatchNorm, nn::Concat, nn::Linear, nn::Relu, nn::Repeat, nn::Residual, nn::Sequential;

namespace {
constexpr long samples = 11;

template <class Scalar> std::vector<Scalar> values_of(std::span<const Scalar> weights, std::span<const Scalar> buffers) {
  std::vector<Scalar> all(weights.begin(), weights.end());
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}
/// One memory for what layers save and for scratch.
template <class Network, class In, class Scalar> std::vector<Scalar> stacked(int threads) {
  sk::Model<Network, In, sk::Cpu, Scalar> model{sk::Seed{7}};
  sk::train::TrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = samples, .execution = sk::Execution::layer_wise, .threads = threads});
  const support::Batch<In, Scalar, decltype(model)::output_extents.count()> batch(samples);
  for (int i = 0; i < 3; ++i) step.step(batch.view());
  return values_of<Scalar>(model.parameters(), model.buffers());
}
/// One memory each: the network is the only stage of a pipeline.
template <class Network, class In, class Scalar> std::vector<Scalar> with_memory_each(int threads) {
  sk::SelfComm self;
  const sk::parallel::Pipeline<Network> pipeline{self, {.schedule = sk::parallel::PipelineSchedule::gpipe, .micro_batches = 1}};
  auto model = pipeline.template model<In, sk::Cpu, Scalar>(sk::Seed{7});
  sk::parallel::PipelineTrainStep step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, pipeline};
  step.reserve({.capacity = samples, .threads = threads});
  const support::Batch<In, Scalar, sk::Model<Network, In, sk::Cpu, Scalar>::output_extents.count()> all(samples);
  sk::data::Batch<Scalar> batch;
  batch.x = all.view().x;
  batch.pitch = all.view().pitch;
  batch.targets = all.view().targets;
  batch.target_pitch = all.view().target_pitch;
  batch.count = batch.global_count = samples;
  for (int i = 0; i < 3; ++i) step.step(batch);
  return values_of<Scalar>(model.parameters(0), model.buffers(0));
}
/// But for rounding: a pipeline multiplies by the factor of the mean elsewhere.
template <class Network, class In, class Scalar = float> void same() {
  for (const int threads : {1, 3}) {
    INFO(threads << " threads");
    const auto a = stacked<Network, In, Scalar>(threads), b = with_memory_each<Network, In, Scalar>(threads);
    CHECK(support::apart(std::vector<double>(a.begin(), a.end()), std::vector<double>(b.begin(), b.end())) < 1e-5);
  }
}

template <int F> using Conv = nn::Conv2d<F, sk::Kernel<3>, sk::Padding<1>, sk::NoBias>;
template <int F> using Unit = Sequential<Conv<F>, BatchNorm<>, Relu>;
template <int F> using Block = Sequential<Residual<Sequential<Conv<F>, BatchNorm<>, Relu, Conv<F>, BatchNorm<>>>, Relu>;
using Images = sk::Shape<9, 8, 16>;
using Head = Sequential<nn::GlobalAvgPool, Linear<3>>;
template <class Network>
constexpr nn::MemoryRequirements host = nn::with_room(nn::analyze<nn::Fused<Network, sk::Cpu>>(sk::Shape<32, 32, 3>::extents));
}  // namespace

TEST_CASE("Arrays of scratch memory that live at the same time lie apart", "[nn]") {
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    auto number = [&, draw = std::uint64_t{0}](long below) mutable {
      return static_cast<long>(sk::random_uniform(3, trial, draw++) * static_cast<float>(below));
    };
    struct Array {
      sk::nn::ActivationOffset at;
      int first, last;
    };
    nn::ScratchLayout layout;
    std::vector<Array> all;
    long most = 0;
    std::vector<long> alive(32, 0);
    for (int edge = 30; edge >= 0; --edge) {
      layout.forget_behind(edge + 1);
      if (!all.empty() && number(4) == 0 && all.back().first == edge + 1) {  // the next gradient is written over this one
        layout.extend(all.back().at, edge + 1, edge);
        all.back().first = edge;
      } else {
        all.push_back({layout.take(1 + number(100), edge, edge + 1), edge, edge + 1});
      }
      if (number(3) == 0) all.insert(all.begin(), {layout.take(1 + number(100), edge + 1, edge + 1), edge + 1, edge + 1});
    }
    for (const Array& a : all) {
      most = std::max(most, a.at.offset + a.at.width);
      for (int k = a.first; k <= a.last; ++k) alive[static_cast<std::size_t>(k)] += a.at.width;
      CHECK(a.at.offset % 16 == 0);
      for (const Array& b : all)
        if (&a != &b && a.first <= b.last && b.first <= a.last)
          CHECK((a.at.offset + a.at.width <= b.at.offset || b.at.offset + b.at.width <= a.at.offset));
    }
    CHECK(most <= 3 * *std::max_element(alive.begin(), alive.end()));  // no more than gaps of what has been there
  }
}

TEST_CASE("What layers save shares its memory with scratch, and nothing else changes", "[nn]") {
  same<sk::models::CifarResNet<20>, sk::Shape<8, 12, 3>>();
  same<sk::models::CifarResNet<14, sk::models::Shortcut::projection>, sk::Shape<8, 8, 3>>();
  same<sk::models::CifarResNet<14>, sk::Shape<8, 8, 3>, double>();  // no direct kernels, which add to a gradient
  same<Sequential<Repeat<3, Block<16>>, Head>, Images>();           // nobody wants the gradient of their input
  same<Sequential<Block<16>, Repeat<2, Repeat<2, Block<16>>>, Head>, Images>();
  same<Sequential<Unit<40>, Repeat<2, Block<40>>, Unit<7>, Head>, Images>();
  same<Sequential<Unit<12>, Repeat<4, Unit<12>>, Concat<Repeat<2, Block<12>>, Unit<5>>, Unit<9>, Head>, Images>();
  same<Sequential<Concat<Repeat<2, Block<16>>, Unit<5>>, Residual<Repeat<2, Unit<21>>, Unit<21>>, nn::Tanh, Head>, Images>();
  same<Sequential<Unit<16>, nn::Recompute<Repeat<2, Block<16>>>, Repeat<3, nn::Recompute<Block<16>>>, Head>, Images>();
  same<Sequential<Unit<16>, nn::GroupNorm<4>, Relu, Repeat<2, Sequential<nn::GroupNorm<2>, Conv<16>>>, nn::Dropout<>, Unit<4>,
                  nn::Flatten, Linear<30>, BatchNorm<>, Relu, Linear<3>>,
       Images>();
}

TEST_CASE("The deep layers' memory is scratch for the wide ones in front", "[nn]") {
  constexpr auto r20 = host<sk::models::CifarResNet<20>>;
  constexpr long edge = 32 * 32 * 16;  // of the first stack; half of it and a quarter in the others
  STATIC_REQUIRE(r20.saved_for_backward == 7 * edge + 6 * edge / 2 + 6 * edge / 4);
  // The last blocks' arrays are a quarter as wide, and the first ones find room where later layers have saved.
  STATIC_REQUIRE(r20.stacked < r20.saved_for_backward + 3 * edge / 2);
  STATIC_REQUIRE(r20.scratch > 4 * edge);
  constexpr auto r56 = host<sk::models::CifarResNet<56>>;
  STATIC_REQUIRE(r56.stacked - r56.saved_for_backward < 9 * edge / 8);
}
