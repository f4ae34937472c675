// SPDX-License-Identifier: Apache-2.0
// A bit of a weight that flips on one rank is found after that step, and named; bench reliability has 500 of them.
#include "skein/train/replicas.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/trainer.hpp>

#include "../../bench/support/flipped_bits.hpp"

TEST_CASE("a flipped bit of a weight is found after its step: its parameter, and of three and four ranks the one that differs",
          "[train]") {
  const int ranks = GENERATE(3, 4);
  for (std::uint64_t trial = 0; trial < 15; ++trial) {
    const bench::FlippedBit flipped(trial, ranks);
    const std::string text = flipped.said();
    CAPTURE(text, flipped.parameter, flipped.rank, flipped.step);
    CHECK(flipped.named_by(text));
  }
  CHECK(bench::FlippedBit(0, ranks).said(false).empty());
}

TEST_CASE("of two ranks neither is said to be right", "[train]") {
  const bench::FlippedBit flipped(1, 2);
  const std::string text = flipped.said();
  CHECK_THAT(text, Catch::Contains(flipped.parameter + " is ") && Catch::Contains("on rank 0") && Catch::Contains("on rank 1"));
  CHECK_THAT(text, !Catch::Contains("most ranks"));
}

namespace {
struct ThrowsAfterStep {
  int step;
  void on_step_end(const skein::train::StepRecord& r, skein::train::FitControl&) const {
    if (r.step == step) throw std::runtime_error("the sensor does not answer");
  }
};
struct ThrowsAtEnd {
  void on_fit_end(const skein::History&) const { throw std::runtime_error("the disk is full"); }
};
/// What rank 0 of two hears from fits of three steps each, of which each begins as `before(number of the fit, rank, model)` says.
template <class MakePolicy, class Before>
std::string heard_of_fits(const MakePolicy& make, const Before& before, bool breaks = false) {
  namespace sk = skein;
  const auto rows = sk::data::from_tensors(std::vector<float>(2 * 12, 1), sk::Extents{1, {2}}, std::vector<float>(12, 1));
  std::string heard;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    sk::Model<sk::nn::Linear<1>, sk::Shape<2>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, make(world)};
    for (int fit = 0; fit < 3; ++fit) {
      sk::FitOptions options{.epochs = 1, .batch = 4, .progress = false, .threads = 1};
      if (breaks && fit == 1) options.callbacks = {ThrowsAfterStep{1}};
      before(fit, world.rank(), model);
      try {
        trainer.fit(rows, options);
      } catch (const sk::CommError& e) {
        if (world.rank() == 0) heard = std::to_string(fit) + ": " + e.what();
        return;
      } catch (const std::runtime_error&) {}
    }
  });
  return heard;
}
}  // namespace

TEST_CASE("a callback that throws at the end of a fit, on one rank, does not make the next one differ", "[train]") {
  namespace sk = skein;
  const auto rows = sk::data::from_tensors(std::vector<float>(2 * 12, 1), sk::Extents{1, {2}}, std::vector<float>(12, 1));
  std::string heard, thrown;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    sk::Model<sk::nn::Linear<1>, sk::Shape<2>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.01f},
                        sk::parallel::DataParallel{world, sk::parallel::SyncEvery<2>{}}};
    for (int fit = 0; fit < 2; ++fit) {
      sk::FitOptions options{.epochs = 1, .batch = 4, .progress = false, .threads = 1};
      if (fit == 0 && world.rank() == 0) options.callbacks = {ThrowsAtEnd{}};
      try {
        trainer.fit(rows, options);
      } catch (const sk::CommError& e) {
        if (world.rank() == 0) heard = e.what();
        return;
      } catch (const std::runtime_error& e) { thrown = e.what(); }
    }
  });
  CHECK(thrown == "the disk is full");
  CHECK(heard.empty());
}

TEST_CASE("a fit in which ranks drift is refused where one of them begins it with other weights than the others", "[train]") {
  namespace sk = skein;
  namespace sp = skein::parallel;
  const auto sync = [](auto& world) { return sp::DataParallel{world, sp::SyncEvery<2>{}}; };
  const auto nothing = [](int, int, auto&) {};
  const auto changes = [](int in_fit) {
    return [=](int fit, int rank, auto& model) {
      if (fit == in_fit && rank == 1) model.modify()[0] += 1;
    };
  };
  const auto named = [](int fit) {
    return Catch::StartsWith(std::to_string(fit) + ": fit: the model with which it begins is of hash ");
  };
  CHECK_THAT(heard_of_fits(sync, changes(0)), named(0));
  CHECK_THAT(heard_of_fits(sync, changes(2)), named(2));
  CHECK_THAT(heard_of_fits([](auto& world) { return sp::Gossip{world}; }, changes(1)), named(1));
  const auto average = [](auto& world) { return sp::ModelAverage{world, sp::Period<2>{}}; };
  CHECK_THAT(heard_of_fits(average, changes(1)), named(1));
  CHECK(heard_of_fits(sync, nothing).empty());
  CHECK(heard_of_fits(average, nothing).empty());
  CHECK(heard_of_fits([](auto& world) { return sp::ModelAverage{world, {.at_end = false}, sp::Period<2>{}}; }, nothing).empty());
  CHECK(heard_of_fits(sync, nothing, true).empty());  // behind a fit that an exception broke off they have weights of their own
}
