// SPDX-License-Identifier: Apache-2.0
// What callbacks ask of a fit at the begin of an epoch, and before an exception ends it: what was asked is done, and a file that
// is saved then has it. A batch whose step is not made leaves nothing.
#include "skein/train/fit_control.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/data/map.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using sk::train::FitControl;

namespace {
struct First : nn::Sequential<nn::Linear<7>, nn::BatchNorm<>, nn::Tanh> {};
struct Last : nn::Sequential<nn::Linear<3>> {};
struct Net : nn::Sequential<First, Last> {};
using Model = sk::Model<Net, sk::Shape<5>>;

auto trainer_of(Model& model) { return sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.2f}}; }
std::vector<float> values(const auto& model) {
  std::vector<float> all(model.parameters().begin(), model.parameters().end());
  all.insert(all.end(), model.buffers().begin(), model.buffers().end());
  return all;
}
sk::FitOptions options(sk::train::Callbacks callbacks) {
  return {.epochs = 4, .batch = 12, .callbacks = std::move(callbacks), .progress = false, .threads = 1};
}

/// Throws at the end of an epoch.
struct ThrowsAt {
  int epoch;
  void on_epoch_end(const sk::train::EpochRecord& r, FitControl&) const {
    if (r.epoch == epoch) throw std::runtime_error("a disk is full");
  }
};
struct KeepsAt {
  int epoch;
  void on_epoch_end(const sk::train::EpochRecord& r, FitControl& c) const {
    if (r.epoch == epoch) c.keep_weights();
  }
};
/// Asks to stop when an epoch begins, or the fit does.
struct StopsBefore {
  int epoch;
  void on_epoch_begin(int number, FitControl& c) const {
    if (number == epoch) c.stop("enough");
  }
};

/// The weights of a fit that a callback breaks off at the end of its second epoch, and that is loaded and goes on.
std::vector<float> broken_off(const sk::train::AnyCallback& asks, bool throws) {
  const support::TemporaryFolder folder;
  const support::Points points(48, {1, {5}});
  Model first{sk::Seed{3}}, second{sk::Seed{4}};
  auto trainer = trainer_of(first);
  if (!throws) return trainer.fit(points.set(), options({asks, ThrowsAt{-1}})), values(first);
  CHECK_THROWS_AS(trainer.fit(points.set(), options({asks, ThrowsAt{2}})), std::runtime_error);
  trainer.save(folder / "two");
  auto rest = trainer_of(second);
  rest.load(folder / "two");
  rest.fit(points.set(), options({asks, ThrowsAt{-1}}));
  return values(second);
}
}  // namespace

TEST_CASE("what a callback asks for before another one throws is done, and goes on", "[train]") {
  const sk::train::ReduceOnPlateau halves{.factor = 0.5, .patience = 0, .threshold = 1e9};
  CHECK(broken_off(halves, true) == broken_off(halves, false));
  CHECK(broken_off(KeepsAt{2}, true) == broken_off(KeepsAt{2}, false));
  CHECK(broken_off(KeepsAt{2}, true) != broken_off(KeepsAt{-1}, false));
}

TEST_CASE("a fit that is stopped when an epoch begins makes no step of it, and goes on from there", "[train]") {
  const support::Points points(48, {1, {5}});
  Model whole{sk::Seed{3}};
  trainer_of(whole).fit(points.set(), options({StopsBefore{-1}}));
  for (const std::int64_t every : {0, 1}) {
    const support::TemporaryFolder folder;
    Model first{sk::Seed{3}}, second{sk::Seed{4}}, third{sk::Seed{5}};
    auto trainer = trainer_of(first);
    sk::FitOptions stopped = options({StopsBefore{3}}), rest = options({StopsBefore{-1}});
    stopped.checkpoint = rest.checkpoint = {.folder = folder / "run", .every = every};
    CHECK(trainer.fit(points.set(), stopped).size() == 2);
    CHECK(trainer.train_step().steps() == 8);
    trainer.save(folder / "file");
    auto of_file = trainer_of(second), of_run = trainer_of(third);
    of_file.load(folder / "file");
    of_file.fit(points.set(), options({StopsBefore{-1}}));
    CHECK(values(second) == values(whole));
    of_run.fit(points.set(), rest);
    CHECK(values(third) == values(whole));
  }
}

TEST_CASE("options of callbacks that are none are refused before the fit begins: the next one goes on", "[train]") {
  const support::Points points(48, {1, {5}});
  const support::TemporaryFolder folder;
  Model first{sk::Seed{3}}, second{sk::Seed{4}};
  auto trainer = trainer_of(first), rest = trainer_of(second);
  trainer.fit(points.set(), options({sk::train::EarlyStopping{.patience = 9}, StopsBefore{3}}));
  trainer.save(folder / "two");
  rest.load(folder / "two");
  CHECK_THROWS_AS(rest.fit(points.set(), options({sk::train::EarlyStopping{.patience = -1}, StopsBefore{-1}})),
                  sk::ArgumentError);
  CHECK(rest.fit(points.set(), options({sk::train::EarlyStopping{.patience = 9}, StopsBefore{-1}})).size() == 4);
  CHECK(rest.train_step().steps() == 16);
}

namespace {
/// A fit of steps of two batches.
sk::FitOptions accumulating(sk::train::Callbacks callbacks) {
  sk::FitOptions o = options(std::move(callbacks));
  o.epochs = 2, o.batch = 8, o.loader.shuffle = false, o.step.accumulate = 2;
  return o;
}
/// Notes the running statistics after each step.
struct Notes {
  std::function<std::vector<float>()> buffers;
  std::vector<float> at_update{};
  void on_update(std::int64_t) { at_update = buffers(); }
};
/// Of the six batches of an epoch the last, with which its third step would be made, cannot be read.
void break_off(auto& trainer, const std::function<std::vector<float>()>& buffers) {
  const support::Points points(48, {1, {5}});
  Notes notes{buffers};
  const auto broken = sk::data::map(points.set(), [](auto, std::int64_t index, std::int64_t) {
    if (index == 40) throw std::runtime_error("a sample cannot be read");
  });
  CHECK_THROWS_WITH(trainer.fit(broken, accumulating({std::ref(notes)})), Catch::Contains("a sample cannot be read"));
  CHECK(trainer.train_step().steps() == 2);
  CHECK(!notes.at_update.empty());
  CHECK(buffers() == notes.at_update);
}
}  // namespace

TEST_CASE("a batch whose step is broken off leaves nothing in running statistics", "[train]") {
  const support::TemporaryFolder folder;
  const support::Points points(48, {1, {5}});
  Model whole{sk::Seed{3}}, model{sk::Seed{3}}, again{sk::Seed{4}};
  trainer_of(whole).fit(points.set(), accumulating({}));
  auto trainer = trainer_of(model), rest = trainer_of(again);
  break_off(trainer, [&] { return std::vector<float>(model.buffers().begin(), model.buffers().end()); });
  trainer.save(folder / "file");
  rest.load(folder / "file");
  rest.fit(points.set(), accumulating({}));
  CHECK(values(again) == values(whole));
}

TEST_CASE("nor does one whose step of a pipeline is broken off", "[train]") {
  sk::SelfComm self;
  const sk::parallel::Pipeline<First, Last> pipeline{self, {.micro_batch = 4}};
  auto model = pipeline.model<sk::Shape<5>>(sk::Seed{3});
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.2f}, pipeline};
  break_off(trainer, [&] { return std::vector<float>(model.buffers(0).begin(), model.buffers(0).end()); });
}
