// SPDX-License-Identifier: Apache-2.0
// What is frozen from the first layer on costs nothing in backward, in the exchange and in the optimizer's state, and changes
// nothing of the rest: the gradients of what is trained are, bit by bit, those of a training of all.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/concat.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/trainer.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
std::atomic<int> backward_calls{0};  // of Counted, by all workers
/// Adds a bias; says when its backward runs.
struct Counted {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {.output = in, .parameters = {{{"bias", {1, {in.last()}}, sk::Init::zeros, 1, 1}}}};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long pitch = sk::sample_pitch(In::extents);
    for (long b = 0; b < f.batch; ++b)
      for (long i = 0; i < pitch; ++i) f.y[b * pitch + i] = f.x[b * pitch + i] + (i < In::count ? f.parameters[i] : 0);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    ++backward_calls;
    constexpr long pitch = sk::sample_pitch(In::extents);
    for (long b = 0; b < f.batch; ++b)
      for (long i = 0; i < pitch; ++i) {
        if (i < In::count) f.gradients[i] += f.dy[b * pitch + i];
        if (f.dx) f.dx[b * pitch + i] = f.dy[b * pitch + i];
      }
  }
};

/// Containers of every kind: parameters of 12 layers.
using Net = nn::Sequential<nn::Tanh, nn::Sequential<Counted, nn::Linear<24>, nn::Relu>,
                           nn::Repeat<2, nn::Residual<nn::Sequential<nn::BatchNorm<>, Counted, nn::Linear<24>, nn::Tanh>>>,
                           nn::Concat<nn::Linear<8>, nn::Sequential<Counted, nn::Linear<8>>>, nn::Reshape<4, 4>,
                           nn::Gru<6, sk::LastState>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<5>, sk::Cpu, double>;

struct Points {
  std::vector<double> x = std::vector<double>(24 * 8), y = std::vector<double>(24 * 3);
  Points() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 8 < 5 ? std::sin(0.7 * static_cast<double>(i)) : 0;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(1.3 * static_cast<double>(i));
  }
  sk::BatchView<double> batch(long lo = 0, long hi = 24) const {
    sk::BatchView<double> b{x.data(), 8, nullptr, y.data(), 3, 24};
    b.global_count = 24;
    return b.part(lo, hi);
  }
};

template <class M = Model> std::vector<double> gradients(long first_trained, int threads, sk::Execution execution) {
  const Points points;
  M model{sk::Seed{5}};
  sk::Executor executor{
      model, nn::Mse{}, {.capacity = 24, .execution = execution, .threads = threads, .first_trained = first_trained}};
  executor.forward_backward(points.batch(), {.key = 1});
  executor.forward_backward(points.batch(), {.accumulate = true, .key = 2});
  return {model.gradients().begin(), model.gradients().end()};
}

/// Frozen up to each parameter in turn, and all of it.
template <class Model> void check_every_beginning(int threads) {
  const std::vector<double> all = gradients<Model>(0, threads, sk::Execution::layer_wise);
  for (const sk::plan::Entry& e : Model::program.parameters()) {
    const std::vector<double> some = gradients<Model>(e.offset, threads, sk::Execution::layer_wise);
    const sk::plan::LayerNode& layer = Model::program.layers()[static_cast<std::size_t>(e.layer)];
    INFO(std::string_view(Model::program.name(e)) << ", " << threads << " threads");
    bool same = true, zeros = true;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (static_cast<long>(i) >= e.offset) same = same && some[i] == all[i];
      else if (static_cast<long>(i) < layer.parameter) zeros = zeros && some[i] == 0;
    CHECK(same);
    CHECK(zeros);
  }
  CHECK(gradients<Model>(Model::sizes.stored, threads, sk::Execution::layer_wise) == std::vector<double>(all.size()));
}

/// Adam, with the first so many of the network's children frozen.
sk::optim::Adam adam(int frozen) {
  sk::optim::Adam a{.lr = 0.01f};
  for (int i = 1; i < frozen; ++i)
    if (i != 5) a.groups.rules.push_back(sk::optim::frozen(std::to_string(i) + ".*"));
  return a;
}

struct Result {
  std::vector<double> losses, weights;
  friend bool operator==(const Result&, const Result&) = default;
};
template <class Policy = sk::parallel::SingleProcess>
Result train(int frozen, int threads, const Policy& policy = {}, int rank = 0, int ranks = 1) {
  const Points points;
  Model model{sk::Seed{5}};
  sk::train::TrainStep step{model, nn::Mse{}, adam(frozen), policy};
  step.reserve({.capacity = 24, .threads = threads});
  Result r;
  for (std::uint64_t i = 1; i < 5; ++i)
    r.losses.push_back(step.step(points.batch(24 * rank / ranks, 24 * (rank + 1) / ranks), {.clip_norm = 1, .key = i}).mean());
  r.weights.assign(model.parameters().begin(), model.parameters().end());
  return r;
}
/// Where the parameter of that name begins in the arena.
long offset(std::string_view name) {
  for (const auto& e : Model::program.parameters())
    if (Model::program.name(e) == name) return e.offset;
  return -1;
}
void require_close(const Result& a, const Result& b) {
  for (std::size_t i = 0; i < a.losses.size(); ++i) CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(1e-9));
  for (std::size_t i = 0; i < a.weights.size(); ++i) CHECK(a.weights[i] == Approx(b.weights[i]).margin(1e-9).epsilon(0));
}
}  // namespace

TEST_CASE("gradients of what is trained are those of a training of all, and none are made before it", "[train]") {
  for (const int threads : {1, 2, 4}) check_every_beginning<Model>(threads);
  CHECK_THROWS_WITH(gradients(-1, 1, sk::Execution::layer_wise), Catch::Contains(".first_trained is -1"));
}

TEST_CASE("a frozen beginning ends within containers of a graph, and within blocks of blocks", "[train]") {
  using L = nn::Linear<6>;
  using Wired = nn::Graph<nn::Input<struct x>, nn::Apply<L, nn::From<x>, nn::To<struct a>>,
                          nn::Apply<nn::Sequential<L, nn::Tanh>, nn::From<a>, nn::To<struct b>>,
                          nn::Apply<nn::Residual<nn::Sequential<L, nn::Tanh>>, nn::From<b>, nn::To<struct c>>,
                          nn::Apply<nn::Add, nn::From<a, c>, nn::To<struct d>>,
                          nn::Apply<nn::Linear<3>, nn::From<d>, nn::To<struct y>>, nn::Output<y>>;
  using Block = nn::Sequential<nn::Residual<nn::Sequential<L, nn::Tanh, L>>, nn::Relu>;
  using Nested = nn::Sequential<L, nn::Tanh, nn::Repeat<3, nn::Sequential<nn::Repeat<2, Block>>>, nn::Linear<3>>;
  for (const int threads : {1, 2}) {
    check_every_beginning<sk::Model<Wired, sk::Shape<5>, sk::Cpu, double>>(threads);
    check_every_beginning<sk::Model<Nested, sk::Shape<5>, sk::Cpu, double>>(threads);
  }
}

TEST_CASE("backward ends at the first layer that is trained", "[train]") {
  const auto calls = [](long first_trained) {
    backward_calls = 0;
    (void)gradients(first_trained, 1, sk::Execution::layer_wise);
    return backward_calls / 2;
  };
  CHECK(calls(0) == 4);
  CHECK(calls(offset("1.1.weight")) == 3);       // without the bias before it
  CHECK(calls(offset("2.body.0.weight")) == 3);  // the first block of Repeat
  CHECK(calls(offset("3.body.0.weight")) == 2);  // the second
  CHECK(calls(offset("4.0.weight")) == 1);       // Concat
  CHECK(calls(offset("6.weight_ih")) == 0);
}

TEST_CASE("a frozen beginning has no state of the optimizer, and stays as it was", "[train]") {
  const Model fresh{sk::Seed{5}};
  const sk::optim::BoundOptimizer all{adam(0), fresh}, head{adam(6), fresh};
  CHECK(all.first_trained() == 0);
  CHECK(head.first_trained() == offset("6.weight_ih"));
  CHECK(head.state_bytes() < all.state_bytes() / 2);
  CHECK(head.kept() == sk::plan::Range{head.first_trained(), Model::sizes.stored});
  for (const int threads : {1, 2, 4}) {
    const Result r = train(6, threads), none = train(8, threads);
    bool same = true;
    for (long i = 0; i < head.first_trained(); ++i)
      same = same && r.weights[static_cast<std::size_t>(i)] == fresh.parameters()[static_cast<std::size_t>(i)];
    CHECK(same);
    CHECK(r.losses.back() < r.losses.front());
    CHECK(none.weights == std::vector<double>(fresh.parameters().begin(), fresh.parameters().end()));  // all is frozen
  }
}

TEST_CASE("a loop by hand freezes as the trainer does", "[train]") {
  const Points points;
  Model model{sk::Seed{5}};
  // [quote loop]
  sk::optim::BoundOptimizer optimizer{adam(6), model};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 24, .threads = 2, .first_trained = optimizer.first_trained()}};
  // [end]
  for (std::uint64_t i = 1; i < 5; ++i) {
    executor.forward_backward(points.batch(), {.key = i});
    optimizer.step(model, {.clip_norm = 1});
  }
  const Result r = train(6, 2);
  for (std::size_t i = 0; i < r.weights.size(); ++i)
    CHECK(model.parameters()[i] == Approx(r.weights[i]).margin(1e-12).epsilon(0));
}

TEST_CASE("gradients of a frozen beginning are not exchanged", "[train]") {
  const Result serial = train(6, 1), loose = train(0, 1);
  std::vector<Result> ranks(3), sharded(3), averaged(3);
  std::vector<long> first(3, -1);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const sk::parallel::DataParallel policy{world, {.bucket_bytes = 512}, sk::parallel::SyncBatchNorm{}};
    ranks[rank] = train(6, 2, policy, world.rank(), 3);
    sharded[rank] = train(6, 1, sk::parallel::DataParallel{world, sk::parallel::Sharded<2>{}, sk::parallel::SyncBatchNorm{}},
                          world.rank(), 3);
    averaged[rank] = train(6, 1, sk::parallel::ModelAverage{world, {.state = true}, sk::parallel::Period<2>{}}, world.rank(), 3);
    Model model{sk::Seed{5}};
    sk::train::TrainStep step{model, nn::Mse{}, adam(6), policy};
    step.reserve({.capacity = 8, .threads = 1});
    step.step(Points().batch(8 * world.rank(), 8 * world.rank() + 8));
    long begin = Model::sizes.stored;
    for (const auto& b : step.policy_state().trace()) begin = std::min(begin, b.range.begin);
    first[rank] = begin;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    require_close(ranks[rank], serial);
    require_close(sharded[rank], serial);
    CHECK(averaged[rank].weights == averaged[0].weights);
    CHECK(first[rank] == offset("6.weight_ih"));
  }
  CHECK(serial.weights != loose.weights);
}

TEST_CASE("a training with a frozen beginning is saved whole, and goes on; or with all of it", "[train]") {
  std::vector<float> x(24 * 5), y(24 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * static_cast<float>(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(1.3f * static_cast<float>(i));
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {5}}, y);
  const support::TemporaryFolder folder;
  const auto fit = [&](int frozen, int from, int to) {
    Model model{sk::Seed{5}};
    sk::Trainer trainer{model, nn::Mse{}, adam(frozen)};
    if (from > 0) trainer.load(folder / "training");
    trainer.fit(data, {.epochs = to, .batch = 8, .progress = false, .threads = 1});
    trainer.save(folder / (from > 0 ? "again" : "training"));
    return std::vector<double>(model.parameters().begin(), model.parameters().end());
  };
  const std::vector<double> once = fit(6, 0, 4);
  (void)fit(6, 0, 2);
  CHECK(fit(6, 2, 4) == once);
  const std::vector<double> thawed = fit(0, 2, 4);
  CHECK(thawed != once);
  CHECK(thawed[static_cast<std::size_t>(offset("1.1.weight"))] != once[static_cast<std::size_t>(offset("1.1.weight"))]);
}
