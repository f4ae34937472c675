// SPDX-License-Identifier: Apache-2.0
// A Residual and the Relu behind it as one: sums in the body's last pass, gradients added in place, or neither where the body's
// layers cannot; whole networks, fused and not; with Recompute, frozen beginnings and K-FAC's factors.
#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/models/cifar_resnet.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/train_step.hpp>

#include "support/fused_networks.hpp"

using namespace skein;
using nn::BatchNorm;
using nn::Conv2d;
using nn::Relu;
using nn::Residual;

namespace {
using None = nn::Identity;
template <class... Ls> using Net = nn::Sequential<Ls...>;
template <int F, int Step = 1> using Conv = Conv2d<F, Kernel<3>, Stride<Step>, Padding<1>, NoBias>;
using In = Shape<10, 10, 3>;

// Row<true, Ls...> are layers behind each other; in Row<false, Ls...> an Identity keeps each from the next.
template <class... Ls> struct Apart;
template <class L> struct Apart<L> { using type = Net<L>; };
template <class L, class... Rest> struct Apart<L, Rest...> {
  template <class... Ls> static Net<L, None, Ls...> join(Net<Ls...>*);
  using type = decltype(join(static_cast<typename Apart<Rest...>::type*>(nullptr)));
};
template <bool Fuse, class... Ls> using Row = std::conditional_t<Fuse, Net<Ls...>, typename Apart<Ls...>::type>;

template <bool Fuse, int F, int Step = 1> using Body = Row<Fuse, Conv<F, Step>, BatchNorm<>, Relu, Conv<F>, BatchNorm<>>;
template <bool Fuse, int F> using Stem = Row<Fuse, Conv<F>, BatchNorm<>, Relu>;
template <bool Fuse, class Of, class... Shortcut> using Block = Row<Fuse, Residual<Of, Shortcut...>, Relu>;

// Identity behind direct kernels; zeros, and a projection, beside a strided one; Identity behind oneDNN's.
template <bool Fuse> using Basic =
    Net<Stem<Fuse, 16>, Block<Fuse, Body<Fuse, 16>>, Block<Fuse, Body<Fuse, 16>>, nn::GlobalAvgPool>;
// The same, all of one Sequential: the second block's gradient is written over the first one's, whose input is made again.
template <bool Fuse> using InOne =
    Row<Fuse, Conv<16>, BatchNorm<>, Relu, Residual<Body<Fuse, 16>>, Relu, Residual<Body<Fuse, 16>>, Relu, nn::GlobalAvgPool>;
template <bool Fuse> using Zeros =
    Net<Stem<Fuse, 16>, Block<Fuse, Body<Fuse, 32, 2>, nn::ZeroPad2d<0, Stride<2>, ZeroChannels<8, 8>>>, nn::GlobalAvgPool>;
template <bool Fuse> using Projected =
    Net<Stem<Fuse, 8>, Block<Fuse, Body<Fuse, 16>, Row<Fuse, Conv2d<16, Kernel<1>>, BatchNorm<>>>,
        Block<Fuse, Body<Fuse, 16, 2>, Row<Fuse, Conv2d<16, Kernel<1>, Stride<2>>, BatchNorm<>>>, nn::GlobalAvgPool>;
template <bool Fuse> using Wide = Net<Stem<Fuse, 40>, Block<Fuse, Body<Fuse, 40>>, nn::GlobalAvgPool>;
// No layer of the body joins a sum; one layer alone; blocks within a body; a sum without a ReLU.
template <bool Fuse> using Plain = Net<Stem<Fuse, 16>, Block<Fuse, Net<Conv<16>>>, Block<Fuse, Net<Relu, Conv<16>>>,
                                       Block<Fuse, Row<Fuse, Conv<16>, BatchNorm<>>>, nn::GlobalAvgPool>;
template <bool Fuse> using Nested =
    Net<Stem<Fuse, 16>, Block<Fuse, Row<Fuse, Conv<16>, BatchNorm<>, Relu, Block<Fuse, Body<Fuse, 16>>, Conv<16>, BatchNorm<>>>,
        Residual<Body<Fuse, 16>>, nn::GlobalAvgPool>;
template <bool Fuse> using Repeated = Net<Stem<Fuse, 16>, nn::Repeat<2, Block<Fuse, Body<Fuse, 16>>>,
                                          nn::Recompute<Block<Fuse, Body<Fuse, 16>>>, nn::GlobalAvgPool>;

/// Weights and running statistics after some steps of training in double.
template <class Network, class Optimizer> std::vector<double> trained(const Optimizer& optimizer, int threads) {
  using M = Model<Network, In, Cpu, double>;
  M model{Seed{7}};
  train::TrainStep step{model, nn::Mse{}, optimizer, parallel::SingleProcess{}};
  step.reserve({.capacity = 11, .threads = threads});
  const support::Batch<In, double, M::output_extents.count()> batch(11);
  for (int i = 0; i < 4; ++i) step.step(batch.view());
  std::vector<double> values(model.parameters().begin(), model.parameters().end());
  values.insert(values.end(), model.buffers().begin(), model.buffers().end());
  return values;
}
template <template <bool> class Network, class Optimizer> void train_alike(const Optimizer& optimizer, double tolerance) {
  for (const int threads : {1, 2})
    CHECK(support::apart(trained<Network<true>>(optimizer, threads), trained<Network<false>>(optimizer, 1)) < tolerance);
}
}  // namespace

TEST_CASE("A Residual and its Relu become one, with the layers of both") {
  using Block16 = nn::Fused<Block<true, Body<true, 16>>, Cpu>;
  STATIC_REQUIRE(Block16::size == 1);
  using R = TypeAt<Block16::children, 0>::composite;
  STATIC_REQUIRE(nn::RectifiedResidualLike<R>);
  STATIC_REQUIRE(R::rectified_body::size == 2);
  constexpr Extents in{3, {8, 8, 16}};
  constexpr auto fused = nn::analyze<Block16>(in), plain = nn::analyze<Block<true, Body<true, 16>>>(in);
  STATIC_REQUIRE(fused.stored == plain.stored);
  STATIC_REQUIRE(fused.layer_nodes == plain.layer_nodes);
  STATIC_REQUIRE(fused.flops == plain.flops);
  STATIC_REQUIRE(fused.buffers == plain.buffers);
  using M = Model<models::CifarResNet<20>, Shape<32, 32, 3>>;
  CHECK(summary<M>().find("in the body's last pass, fused, 2 layers") != std::string::npos);
}

TEST_CASE("Residual blocks, fused and not, give the same: the body joins the sum") {
  support::agree<Basic<true>, Basic<false>, In>(4);
  support::agree<InOne<true>, InOne<false>, In>(4);
  support::agree<Zeros<true>, Zeros<false>, In>(3);
  support::agree<Projected<true>, Projected<false>, In>(4);
  support::agree<Wide<true>, Wide<false>, In>(3);
}

TEST_CASE("Residual blocks, fused and not, give the same: other bodies") {
  support::agree<Plain<true>, Plain<false>, In>(5);
  support::agree<Nested<true>, Nested<false>, In>(4);
  support::agree<Repeated<true>, Repeated<false>, In>(4);
}

TEST_CASE("K-FAC gets the factors of convolutions in fused blocks") {
  const auto kfac = optim::chain(optim::Kfac{.factor_every = 1, .inverse_every = 2}, optim::Sgd{.lr = 0.05f, .momentum = 0.9});
  train_alike<Basic>(kfac, 1e-9);
  train_alike<Zeros>(kfac, 1e-9);
  train_alike<Projected>(kfac, 1e-9);
  train_alike<Wide>(kfac, 1e-9);
}

TEST_CASE("A frozen beginning ends where it ends, within a fused block, too") {
  optim::Sgd sgd{.lr = 0.05f};
  for (const char* rule : {"0.0.weight", "0.*", "1.0.body.0.weight"}) {  // names that are those of the plain network
    sgd.groups.rules.push_back(optim::frozen(rule));
    INFO("down to " << rule);
    train_alike<Basic>(sgd, 1e-12);
  }
}

TEST_CASE("Ranks exchange gradients of fused blocks when they are final, and statistics over all ranks") {
  const auto alike = []<class Network>(Network) {
    using M = Model<Network, In, Cpu, double>;
    const support::Batch<In, double, M::output_extents.count()> batch(12);
    const auto steps = [&](const auto& policy, int rank, int ranks, int threads) {
      M model{Seed{7}};
      train::TrainStep step{model, nn::Mse{}, optim::Sgd{.lr = 0.05f, .momentum = 0.9}, policy};
      step.reserve({.capacity = 12, .threads = threads});
      auto view = batch.view();
      view.global_count = 12;
      for (int i = 0; i < 4; ++i) step.step(view.part(12 * rank / ranks, 12 * (rank + 1) / ranks));
      std::vector<double> values(model.parameters().begin(), model.parameters().end());
      values.insert(values.end(), model.buffers().begin(), model.buffers().end());
      return values;
    };
    const auto expected = steps(parallel::SingleProcess{}, 0, 1, 1);
    for (const int ranks : {2, 3})
      spawn(ranks, [&](ThreadComm& world) {
        const auto got =
            steps(parallel::DataParallel{world, {.bucket_bytes = 1}, parallel::SyncBatchNorm{}}, world.rank(), ranks, 2);
        if (!(support::apart(got, expected) < 1e-11)) throw Error("a rank's weights are others");
      });
  };
  alike(Projected<true>{});
  alike(Zeros<true>{});
  alike(Nested<true>{});
}
