// SPDX-License-Identifier: Apache-2.0
// Arrays that live at the same time lie apart; and what layers save may share its memory with scratch: a training is that
// where each has memory of its own, as in the stages of a pipeline.
#include <catch2/catch.hpp>

#include <array>
#include <string_view>
#include <utility>
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

constexpr int children = 9;
using Layout = nn::SequentialLayout<children>;
using Needs = std::array<nn::MemoryRequirements, children>;

/// Any children behind each other: leaves and containers of two widths, some of which only rename, or write a gradient in place.
std::pair<Layout, Needs> any_children(std::uint64_t trial) {
  auto one_of = [&, draw = std::uint64_t{0}](int n) mutable {
    return sk::random_uniform(4, trial, draw++) * static_cast<float>(n) < 1;
  };
  Layout layout;
  Needs all{};
  sk::Extents in{1, {16}};
  for (nn::MemoryRequirements& child : all) {
    const bool container = one_of(2);
    child.output = one_of(3) ? sk::Extents{1, {48}} : in;
    child.aliases = child.output == in && one_of(5);
    if (!child.aliases) {
      child.saves_input = one_of(2);
      child.saves_output = one_of(5);
      child.in_place = container && child.output == in;
      child.scratch = child.stacked = container ? 32 : 0;
      child.whole_gradient = !container && one_of(8);
      if (!container && one_of(2)) child.remakes_output = one_of(2) ? nn::Remakes::from_saved : nn::Remakes::from_input;
      if (child.remakes_output == nn::Remakes::from_input) child.saves_input = true;
    }
    layout.add(in, child, container);
    in = child.output;
  }
  return {layout.placed(), all};
}
struct Live {
  const char* what;
  nn::ActivationOffset at;
};
/// What lies in scratch memory while child i, which does not rename, runs backward.
std::vector<Live> live_in_backward(const Layout& layout, const Needs& needs, int i) {
  const auto child = [&](int k) -> const nn::ChildPlace& { return layout.children[static_cast<std::size_t>(k)]; };
  const nn::MemoryRequirements& own = needs[static_cast<std::size_t>(i)];
  std::vector<Live> live{{"the child's own scratch", {child(i).at.scratch, own.scratch}}};
  int behind = i;  // the last name of what it has written
  while (behind + 1 < children && child(behind + 1).source == i) ++behind;
  const nn::ActivationOffset read = child(behind).gradient;
  if (i != layout.last && !child(behind).whole_gradient) live.push_back({"the gradient that it reads", read});
  if (i <= layout.first) return live;
  const nn::ChildPlace& before = child(i - 1);
  if (before.source >= 0 && child(before.source).remade) live.push_back({"its input, made again", child(before.source).again});
  const bool over = own.in_place && i != layout.last && before.gradient.offset == read.offset;
  if (!before.whole_gradient && !over) live.push_back({"the gradient that it writes", before.gradient});
  return live;
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

TEST_CASE("What lies in scratch memory while a child of a Sequential runs backward lies apart", "[nn]") {
  int made_again = 0;
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const auto [layout, needs] = any_children(trial);
    for (int i = 0; i < children; ++i) {
      if (layout.children[static_cast<std::size_t>(i)].source != i) continue;
      const std::vector<Live> live = live_in_backward(layout, needs, i);
      for (std::size_t a = 0; a < live.size(); ++a) {
        made_again += live[a].what == std::string_view("its input, made again");
        CHECK(live[a].at.offset + live[a].at.width <= layout.total.scratch);
        for (std::size_t b = 0; b < a; ++b) {
          INFO("trial " << trial << ", child " << i << ": " << live[a].what << ", and " << live[b].what);
          CHECK((live[a].at.offset + live[a].at.width <= live[b].at.offset ||
                 live[b].at.offset + live[b].at.width <= live[a].at.offset));
        }
      }
    }
  }
  CHECK(made_again > 1000);
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
