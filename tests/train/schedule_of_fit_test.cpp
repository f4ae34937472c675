// SPDX-License-Identifier: Apache-2.0
// The schedule of a training that goes on with another number of steps in an epoch: where it stands then.
#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/schedule.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
struct Net : nn::Sequential<nn::Linear<3>> {};
using Model = sk::Model<Net, sk::Shape<5>>;

/// Stops the fit when so many steps were made, and notes the rate of each.
struct Rates {
  std::int64_t stop;
  std::vector<double> rates{};
  void on_step_end(const sk::train::StepRecord& r, sk::train::FitControl& c) {
    rates.push_back(r.learning_rate);
    if (r.step == stop) c.stop("enough");
  }
};
/// The rates of a fit of four epochs of 40 samples, which goes on with a file if one is named, and is saved.
struct Fit {
  std::string load{}, save{};
  long batch = 4;
  int accumulate = 1;
  std::int64_t stop = -1;
  sk::optim::Schedule schedule = sk::optim::cosine();
};
std::vector<double> rates_of(const Fit& f) {
  const support::Points points(40, {1, {5}});
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1}};
  if (!f.load.empty()) trainer.load(f.load);
  Rates rates{.stop = f.stop};
  trainer.fit(points.set(), {.epochs = 4,
                             .batch = f.batch,
                             .schedule = f.schedule,
                             .callbacks = {std::ref(rates)},
                             .progress = false,
                             .threads = 1,
                             .step = {.accumulate = f.accumulate}});
  if (!f.save.empty()) trainer.save(f.save);
  return rates.rates;
}
std::vector<double> from(std::vector<double> rates, long first) { return {rates.begin() + first, rates.end()}; }
}  // namespace

TEST_CASE("a schedule of the whole fit goes on at the epoch's begin with another number of steps", "[train]") {
  const support::TemporaryFolder folder;
  CHECK(rates_of({.save = folder / "two", .stop = 20}).size() == 20);
  CHECK(rates_of({.load = folder / "two", .batch = 8}) == from(rates_of({.batch = 8}), 10));
  CHECK(rates_of({.load = folder / "two", .accumulate = 5}) == from(rates_of({.accumulate = 5}), 4));
  CHECK(rates_of({.load = folder / "two", .save = folder / "more", .batch = 8, .stop = 25}).size() == 5);  // of the third epoch
  CHECK(rates_of({.load = folder / "more"}) == from(rates_of({}), 30));  // and back: as if there had been no other
}

TEST_CASE("a schedule of the whole fit goes on within an epoch, where steps have another number of batches", "[train]") {
  const support::TemporaryFolder folder;
  CHECK(rates_of({.save = folder / "within", .accumulate = 2, .stop = 6}).size() == 6);  // an epoch, and 2 batches of 10
  const std::vector<double> rest = rates_of({.load = folder / "within", .accumulate = 3});
  CHECK(rest == from(rates_of({.accumulate = 3}), 5));  // of four steps an epoch the last three
}

TEST_CASE("a schedule that counts steps counts on, whatever an epoch has of them", "[train]") {
  const support::TemporaryFolder folder;
  for (const sk::optim::Schedule& counts : {sk::optim::Schedule(sk::optim::cosine(40)),
                                            sk::optim::Schedule([](std::int64_t s) { return 1 / static_cast<float>(1 + s); })}) {
    const std::vector<double> whole = rates_of({.schedule = counts});
    CHECK(rates_of({.save = folder / "two", .stop = 20, .schedule = counts}).size() == 20);
    const std::vector<double> rest = rates_of({.load = folder / "two", .batch = 8, .schedule = counts});
    CHECK(rest == std::vector<double>(whole.begin() + 20, whole.begin() + 30));
  }
}
