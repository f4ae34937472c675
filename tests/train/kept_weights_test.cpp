// SPDX-License-Identifier: Apache-2.0
// Weights that a callback has kept, in a training that goes on: they are given back where their callback may be among those of
// the fit, and forgotten where it is not.
#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

#include "../support/points.hpp"
#include "../support/stop_at.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using sk::train::Callbacks;

namespace {
struct Net : nn::Sequential<nn::Linear<3>> {};
using Model = sk::Model<Net, sk::Shape<5>>;
using Weights = std::vector<float>;

/// Early stopping whose best epoch is the first: what it keeps differs from the last weights.
sk::train::EarlyStopping stopping(bool restore_best) {
  return {.patience = 100, .least_change = 1e9, .restore_best = restore_best};
}
/// A callback of the user's without a name, that keeps the weights of an epoch.
struct Keeps {
  int epoch;
  void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) const {
    if (r.epoch == epoch) c.keep_weights();
  }
};

/// One with a name, which saves in the hook that asks.
struct Best {
  std::function<void()> save;
  std::int64_t seen = 0;
  void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) {
    seen = r.epoch;
    if (r.epoch == 2) c.keep_weights(), save();
  }
  static std::string saved_as() { return "Best"; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & seen); }
};

struct Trained {
  Weights end, last;  // as fit returned, and as the last epoch left them
};
/// A fit, of a training that is loaded where a file is named, and saved then.
template <class Policy = sk::parallel::SingleProcess>
Trained trained(int epochs, const std::string& load, const std::string& save, Callbacks callbacks, const Policy& policy = {}) {
  const support::Points points(48, {1, {5}});
  Model model{sk::Seed{load.empty() ? 3u : 77u}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, policy};
  const auto weights = [&] { return Weights(model.parameters().begin(), model.parameters().end()); };
  if (!load.empty()) trainer.load(load);
  Trained t;
  if (callbacks.size() > 0) callbacks.add([&](const sk::train::EpochRecord&) { t.last = weights(); });
  trainer.fit(points.set(), {.epochs = epochs, .batch = 12, .callbacks = std::move(callbacks), .progress = false, .threads = 1});
  t.end = weights();
  CHECK_THROWS_AS(trainer.fit(points.set(), {.epochs = 1, .batch = 0}), sk::ArgumentError);  // it changes nothing of a training
  if (!save.empty()) trainer.save(save);
  return t;
}
}  // namespace

TEST_CASE("kept weights of a fit that had all its epochs are nobody's where the next one does not restore them", "[train]") {
  const support::TemporaryFolder folder;
  const Trained first = trained(3, "", folder / "three", {stopping(true)});
  REQUIRE(first.end != first.last);
  const Trained others = trained(6, folder / "three", "", {sk::train::ReduceOnPlateau{}, Keeps{100}});
  CHECK(others.end == others.last);
  const Trained without = trained(6, folder / "three", folder / "six", {stopping(false)});
  CHECK(without.end == without.last);
  CHECK(trained(6, folder / "three", "", {}).end == without.last);
  const Trained later = trained(7, folder / "six", "", {stopping(true)});  // no file has them any more
  CHECK(later.end == later.last);
  CHECK(trained(6, folder / "three", "", {stopping(true)}).end == first.end);  // whose they are
  CHECK(trained(6, folder / "three", "", {sk::train::TimeLimit{.seconds = 1e9}, stopping(true)}).end == first.end);
}

TEST_CASE("kept weights of a fit are not those of the next one of the same trainer", "[train]") {
  const support::Points points(48, {1, {5}});
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const auto fit = [&](Callbacks callbacks) {
    trainer.fit(points.set(), {.epochs = 3, .batch = 12, .callbacks = std::move(callbacks), .progress = false, .threads = 1});
    return Weights(model.parameters().begin(), model.parameters().end());
  };
  const Weights first = fit({stopping(true)});
  CHECK(fit({stopping(true), support::StopAt{14}}) != first);  // within its first epoch, before it has kept any
}

TEST_CASE("kept weights of a callback without a name are another's without one, and no others'", "[train]") {
  const support::TemporaryFolder folder;
  const Trained first = trained(3, "", folder / "three", {Keeps{1}});
  REQUIRE(first.end != first.last);
  CHECK(trained(5, folder / "three", "", {Keeps{1}}).end == first.end);
  for (const Callbacks& callbacks : {Callbacks{sk::train::TimeLimit{.seconds = 1e9}}, Callbacks{stopping(false)}}) {
    const Trained next = trained(5, folder / "three", "", callbacks);
    CHECK(next.end == next.last);
  }
}

TEST_CASE("a fit that was stopped goes on with its kept weights, or without its callbacks and them", "[train]") {
  const support::TemporaryFolder folder;
  const Trained first = trained(4, "", folder / "stopped", {stopping(true), support::StopAt{9}});
  REQUIRE(first.end != first.last);
  CHECK(trained(4, folder / "stopped", "", {stopping(true), support::StopAt{100}}).end == first.end);
  const Trained without = trained(4, folder / "stopped", "", {stopping(false), support::StopAt{100}});
  CHECK(without.end == without.last);
  CHECK(trained(4, folder / "stopped", "", {}).end == without.last);
}

TEST_CASE("kept weights stay where a callback of any rank may have kept them", "[train]") {
  const support::TemporaryFolder folder;
  std::array<bool, 3> same[2]{};
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const sk::parallel::DataParallel policy{world};
    const auto of_rank_1 = [&](bool keeps) {
      return world.rank() == 1 && keeps ? Callbacks{Keeps{1}} : Callbacks{sk::train::ReduceOnPlateau{}};
    };
    const Trained first = trained(3, "", folder / "three", of_rank_1(true), policy);
    const Trained again = trained(5, folder / "three", "", of_rank_1(true), policy);
    const Trained without = trained(5, folder / "three", "", of_rank_1(false), policy);
    same[static_cast<std::size_t>(world.rank())] = {first.end != first.last, again.end == first.end, without.end == without.last};
  });
  CHECK(same[0] == std::array{true, true, true});
  CHECK(same[1] == std::array{true, true, true});
}

TEST_CASE("a hook that asks for the weights and saves then has asked under its own name", "[train]") {
  const support::TemporaryFolder folder;
  const support::Points points(48, {1, {5}});
  const sk::FitOptions options{.epochs = 4, .batch = 12, .progress = false, .threads = 1};
  const auto fit = [&](auto& trainer, Callbacks callbacks) {
    auto own = options;
    own.callbacks = std::move(callbacks);
    trainer.fit(points.set(), own);
  };
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  fit(trainer, {stopping(true), Best{[&] { trainer.save(folder / "two"); }}});  // the other has asked before, in epoch 1
  const Weights kept(model.parameters().begin(), model.parameters().end());
  Model other{sk::Seed{5}};
  sk::Trainer next{other, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  next.load(folder / "two");
  fit(next, {stopping(false), Best{[] {}}});
  CHECK(Weights(other.parameters().begin(), other.parameters().end()) == kept);
}
