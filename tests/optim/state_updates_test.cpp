// SPDX-License-Identifier: Apache-2.0
// How many updates a parameter's state has had: a parameter that thaws begins as PyTorch's does, whatever the training's step is.
#include <skein/optim/state_updates.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/trainer.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using sk::optim::ParameterGroupRange;
using sk::optim::StateUpdates;

namespace {
using Net = nn::Sequential<nn::Linear<4>, nn::Linear<3>, nn::Linear<2>>;
using Model = sk::Model<Net, sk::Shape<5>, sk::Cpu, double>;

/// Targets so far away that gradients hardly change.
auto points() {
  return sk::data::from_tensors(std::vector<double>(10 * 5, 0.5), sk::Extents{1, {5}}, std::vector<double>(10 * 2, 1000.0));
}
/// The first weight of each layer.
std::array<double, 3> weights(const Model& m) {
  std::array<double, 3> w{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (const sk::plan::Entry& e : Model::program.parameters())
      if (Model::program.name(e) == std::to_string(i) + ".weight") w[i] = m.parameters()[static_cast<std::size_t>(e.offset)];
  }
  return w;
}
template <class Optimizer> Optimizer freezing(Optimizer o, std::initializer_list<const char*> names) {
  for (const char* name : names) o.groups.rules.push_back(sk::optim::frozen(name));
  return o;
}
/// How far one step moves each layer, in rates, where a file of a hundred others with these layers frozen was loaded before; 0
/// where a file of that step does not go on as what it was saved of.
template <class Optimizer, class Policy = sk::parallel::SingleProcess>
std::array<double, 3> first_step(const Optimizer& optimizer, std::initializer_list<const char*> frozen, const std::string& path,
                                 const Policy& policy = {}) {
  const auto data = points();
  Model before{sk::Seed{3}}, after{sk::Seed{3}};
  sk::FitOptions options{.epochs = 100, .batch = 10, .progress = false, .threads = 1};
  sk::Trainer first{before, nn::Mse{}, freezing(optimizer, frozen), policy};
  first.fit(data, options);
  first.save(path);
  sk::Trainer second{after, nn::Mse{}, optimizer, policy};
  second.load(path);
  const std::array<double, 3> from = weights(after);
  options.epochs = 101;
  second.fit(data, options);
  std::array<double, 3> moved = weights(after);
  for (std::size_t i = 0; i < 3; ++i) moved[i] = std::abs(moved[i] - from[i]) / static_cast<double>(optimizer.lr);
  second.save(path);  // and once more, of what began later
  Model again{sk::Seed{3}};
  sk::Trainer third{again, nn::Mse{}, optimizer, policy};
  third.load(path);
  options.epochs = 102;
  third.fit(data, options);
  options.epochs = 1;
  second.fit(data, options);
  return weights(again) == weights(after) ? moved : std::array<double, 3>{};
}
}  // namespace

TEST_CASE("ranges are cut where states began at different steps", "[optim]") {
  std::vector<sk::plan::Entry> rows(4);
  for (std::size_t i = 0; i < 4; ++i) rows[i].offset = 16 * static_cast<long>(i), rows[i].stored = 16;
  const std::vector<ParameterGroupRange> ranges{{0, 16, 1, 1, true}, {16, 64}};
  const StateUpdates none{}, loaded{.steps = 10, .of_rows = {4, 4, 10, 10}};
  CHECK(none.all_steps());
  CHECK_FALSE(loaded.all_steps());
  CHECK(loaded.part({1, 3}).of_rows == std::vector<std::int64_t>{4, 10});
  CHECK(updates_after(none, 7, rows, ranges, 0).of_rows == std::vector<std::int64_t>{0, 7, 7, 7});
  CHECK(updates_after(loaded, 12, rows, ranges, 0).of_rows == std::vector<std::int64_t>{4, 6, 12, 12});
  CHECK(updates_after(loaded, 12, rows, ranges, 16).of_rows == std::vector<std::int64_t>{0, 6, 12, 12});  // its state is gone
  const auto cut = begun(ranges, rows, loaded);
  CHECK(cut == std::vector<ParameterGroupRange>{{0, 16, 1, 1, true, 0}, {16, 32, 1, 1, false, 6}, {32, 64, 1, 1, false, 0}});
  CHECK(begun(cut, rows, none) == ranges);
  CHECK(loaded.scaled_to(30).of_rows == std::vector<std::int64_t>{12, 12, 30, 30});  // of three workers' updates a step
  CHECK((sk::optim::all_frozen(ranges, 0, 16) && !sk::optim::all_frozen(ranges, 0, 17)));
  CHECK((sk::optim::range_at(cut, 17).since == 6 && sk::optim::range_at(cut, 40).since == 0));
  CHECK_FALSE(StateUpdates{.steps = 3, .of_rows = {4}}.fits(1));
  CHECK_FALSE(StateUpdates{.steps = 3, .of_rows = {1}}.fits(2));
}

TEST_CASE("a parameter that thaws begins as with the first step, one that was not frozen goes on", "[optim]") {
  const support::TemporaryFolder folder;
  const sk::optim::Adam adam{.lr = 1e-6f};
  for (const double moved : first_step(adam, {"0.*"}, folder / "a")) CHECK(moved == Approx(1).epsilon(1e-3));
  for (const double moved : first_step(adam, {"1.*"}, folder / "b")) CHECK(moved == Approx(1).epsilon(1e-3));
  for (const double moved : first_step(sk::optim::AdamW{.lr = 1e-6f, .weight_decay = 0}, {"0.*", "2.*"}, folder / "c"))
    CHECK(moved == Approx(1).epsilon(1e-3));
  const sk::optim::Sgd sgd{.lr = 1e-9f, .momentum = 0.5, .dampening = 0.5};
  const auto whole = first_step(sgd, {}, folder / "d"), thawed = first_step(sgd, {"0.*"}, folder / "e");
  CHECK(thawed[0] == Approx(whole[0]).epsilon(1e-3));  // the first momentum is the gradient
}

TEST_CASE("so it does under other policies, where ranks have parts of the state or of the network", "[optim]") {
  const support::TemporaryFolder folder;
  const sk::optim::Adam adam{.lr = 1e-6f};
  std::vector<std::array<double, 3>> moved;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    using namespace sk::parallel;
    std::vector<std::array<double, 3>> own;
    own.push_back(first_step(adam, {"0.*"}, folder / "a", DataParallel{world}));
    own.push_back(first_step(adam, {"0.*", "1.*"}, folder / "b", DataParallel{world, Sharded<2>{}}));
    own.push_back(first_step(adam, {"0.*"}, folder / "c", ModelAverage{world, Period<3>{}}));
    if (world.rank() == 0) moved = own;
  });
  for (const auto& of_policy : moved)
    for (const double m : of_policy) CHECK(m == Approx(1).epsilon(1e-3));
}

TEST_CASE("servers that update as often as there are workers count the updates of what thaws", "[optim]") {
  const support::TemporaryFolder folder;
  std::array<double, 3> moved{};
  sk::spawn(3, [&](sk::ThreadComm& world) {
    const sk::parallel::ParameterServer server{world, sk::parallel::Staleness<4>{}};
    const sk::optim::Adam adam{.lr = 1e-6f};
    std::array<double, 3> from{}, to{};
    for (const bool thaws : {false, true}) {
      Model model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::Mse{}, thaws ? adam : freezing(adam, {"0.*"}), server};
      if (thaws) trainer.load(folder / "file"), from = weights(model);
      trainer.fit(points(), {.epochs = thaws ? 101 : 100, .batch = 10, .progress = false, .threads = 1});
      trainer.save(folder / "file");
      to = weights(model);
    }
    if (world.rank() == 0)
      for (std::size_t i = 0; i < 3; ++i) moved[i] = std::abs(to[i] - from[i]) / 1e-6;
  });
  for (const double m : moved) CHECK(m == Approx(2).epsilon(1e-2));  // a step of each worker's gradients
}

TEST_CASE("a stage of a pipeline that thaws begins as with the first step", "[optim]") {
  const support::TemporaryFolder folder;
  std::array<double, 3> before{}, after{};
  for (const bool thaws : {false, true})
    sk::spawn(2, [&](sk::ThreadComm& world) {
      sk::parallel::Pipeline<nn::Sequential<nn::Linear<4>>, nn::Sequential<nn::Linear<3>, nn::Linear<2>>> pipeline{world};
      auto model = pipeline.template model<sk::Shape<5>, sk::Cpu, double>(sk::Seed{3});
      const sk::optim::Adam adam{.lr = 1e-6f};
      sk::Trainer trainer{model, nn::Mse{}, thaws ? adam : freezing(adam, {"1.*"}), pipeline};
      if (thaws) trainer.load(folder / "file");
      trainer.fit(points(), {.epochs = thaws ? 101 : 100, .batch = 10, .progress = false, .threads = 1});
      trainer.save(folder / (thaws ? "thawed" : "file"));
    });
  for (const bool thawed : {false, true}) {
    Model model{sk::Seed{4}};
    sk::Trainer whole{model, nn::Mse{}, sk::optim::Adam{.lr = 1e-6f}};
    whole.load_weights(folder / (thawed ? "thawed" : "file"));
    (thawed ? after : before) = weights(model);
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(after[i] - before[i]) / 1e-6 == Approx(1).epsilon(1e-3));
}
