// SPDX-License-Identifier: Apache-2.0
// What a training keeps between fits: epochs count on, a loaded training goes on, and sums of ranks go into a file and come back.
#include "skein/train/fit_state.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>

#include <skein/train/archive.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/training_file.hpp>

namespace sk = skein;
namespace train = skein::train;
using train::detail::FitState;
using Catch::Contains;

namespace {
/// A training that has made so many steps; its ranks' sums are `others` and its own.
struct Training final : train::SavedTraining {
  std::int64_t made = 0;
  double others = 0;
  int own_rank = 1;
  int rank() const override { return own_rank; }
  int ranks() const override { return 2; }
  std::int64_t steps() override { return made; }
  void set_steps(std::int64_t n) override { made = n; }
  std::string optimizer_lines() override { return {}; }
  int state_arrays() override { return 0; }
  std::string loss_name() override { return "Mse"; }
  std::span<const sk::plan::LayerNode> layers() override { return {}; }
  const char* placement() override { return "replicated"; }
  void save_to(train::SectionSink&, bool) override {}
  void saved() override {}
  void load_from(train::SectionSource&) override {}
  void start_again() override {}
  void reduce(std::span<double> values) override {
    for (double& v : values) v += others;
  }
  std::string other{};  // what the other rank says; empty: the same
  std::vector<std::string> texts_of_all(const std::string& own) override { return {own, other.empty() ? own : other}; }
};

constexpr train::EpochOrder order{.seed = 7, .batch = 10, .samples = 40};

/// As a file has it: within the third epoch of a fit that began after two others and 30 steps.
train::FileRecords records() {
  train::FileRecords r;
  r.position.base = 2, r.position.epoch = 1, r.position.step = 3, r.position.running = true, r.position.first_step = 30;
  r.position.order = order;
  return r;
}
}  // namespace

TEST_CASE("epochs of a fit count on from those of the last one, also where that stopped within an epoch") {
  FitState state;
  Training training;
  train::Callbacks none;
  state.begin(order, 4, none, training);
  CHECK((state.position().running && !state.goes_on() && state.epoch_number() == 1));
  state.position().epoch = 2;
  state.position().step = 1;
  state.position().rate_factor = 0.5;
  training.made = 9;
  CHECK(state.epochs_before() == 3);
  state.enter_epoch();  // and an exception ends it there: the sums stay the train step's until another fit begins
  CHECK(state.within_epoch());
  state.begin(order, 4, none, training);
  CHECK(!state.within_epoch());
  CHECK(state.position().base == 3);
  CHECK(state.epoch_number() == 4);
  CHECK(state.position().step == 0);
  CHECK(state.position().first_step == 9);
  CHECK(state.position().rate_factor == 1);
}

TEST_CASE("a loaded training goes on at its step, unless its place or its data say otherwise") {
  const train::detail::FitFacts facts{.rank = 1, .ranks = 2};
  FitState state;
  Training training;
  train::Callbacks none;
  training.made = 36;
  state.resume(facts, records());
  CHECK((state.loaded() && state.goes_on() && state.epochs_before() == 2));
  CHECK(state.seed_of({}, sk::Seed{3}).value == 7);
  CHECK(state.seed_of(sk::Seed{5}, sk::Seed{3}).value == 5);
  SECTION("as it was") {
    state.begin(order, 4, none, training);
    CHECK((state.position().step == 3 && state.position().base == 2 && state.position().first_step == 30));
    CHECK(!state.loaded());
    CHECK(state.seed_of({}, sk::Seed{3}).value == 3);  // of the fit behind it, which is a new one
  }
  SECTION("with an epoch that is shorter than its step") {
    CHECK_THROWS_WITH(state.begin(order, 2, none, training),
                      Contains("was at step 3 of its epoch, this data set and batch have 2"));
    CHECK((state.goes_on() && state.position().step == 3));
  }
  SECTION("with other samples") {
    train::EpochOrder other = order;
    other.batch = 20;
    CHECK_THROWS_AS(state.begin(other, 4, none, training), sk::ArgumentError);
  }
}

TEST_CASE("a loaded training gives the callbacks of another rank than 0, which may be others, the states of their names") {
  train::EarlyStopping stopping;
  stopping.best.value = 0.25, stopping.best.epoch = 2;
  const auto bytes = train::to_bytes(train::Callbacks{stopping, train::best_model([](const train::EpochRecord&) {})});
  FitState state;
  Training training;
  train::FileRecords saved = records();
  saved.callbacks.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  state.resume({.rank = 1, .ranks = 2}, std::move(saved));
  train::EarlyStopping same;
  train::LearningRateLog own;
  own.rates = {{1, 0.5}};
  train::Callbacks others{std::ref(own), std::ref(same), [](train::EpochRecord&) {}};
  SECTION("on rank 0 they are refused, and the right ones go on then") {
    training.own_rank = 0;
    CHECK_THROWS_WITH(state.begin(order, 4, others, training),
                      Contains("holds the state of 2 callbacks, but this training has 3"));
    train::Callbacks right{std::ref(same), train::best_model([](const train::EpochRecord&) {})};
    state.begin(order, 4, right, training);
    CHECK((same.best.value == 0.25 && state.position().step == 3 && state.position().base == 2));
  }
  SECTION("on another rank what rank 0 has not begins anew") {
    state.begin(order, 4, others, training);
    CHECK((same.best.value == 0.25 && same.best.epoch == 2));
    CHECK(own.rates.size() == 1);
  }
  SECTION("also where there is no fit to be made") {
    state.end_without_fit(others, training);
    CHECK(same.best.epoch == 2);
  }
}

TEST_CASE("callbacks that do not take their states on another rank are told here, and the next fit goes on") {
  FitState state;
  Training training;
  training.own_rank = 0, training.other = "!the sensor does not answer";
  train::Callbacks none;
  state.resume({}, records());
  CHECK_THROWS_WITH(state.begin(order, 4, none, training),
                    "fit: rank 1 cannot give its callbacks the states of the loaded training: the sensor does not answer");
  training.other = {};
  CHECK(state.begin(order, 4, none, training));
}

TEST_CASE("on rank 0 too callbacks may be others where the loaded fit had made all its epochs") {
  train::EarlyStopping stopping;
  stopping.best.value = 0.25, stopping.best.epoch = 2;
  const auto bytes = train::to_bytes(train::Callbacks{stopping});
  FitState state;
  Training training;
  train::FileRecords saved = records();
  saved.position.step = 0, saved.position.running = false;
  saved.callbacks.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  state.resume({}, std::move(saved));
  training.own_rank = 0;
  train::EarlyStopping same;
  train::Callbacks others{[](train::EpochRecord&) {}, std::ref(same)};
  state.begin(order, 4, others, training);
  CHECK(same.best.epoch == 2);
}

TEST_CASE("on rank 0 too callbacks may be others where the loaded fit has ended and there is none to be made") {
  train::EarlyStopping stopping;
  stopping.best.value = 0.25, stopping.best.epoch = 2;
  const auto bytes = train::to_bytes(train::Callbacks{stopping});
  train::FileRecords saved = records();
  saved.callbacks.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SECTION("after all its epochs") { saved.position.step = 0, saved.position.running = false; }
  SECTION("since a callback has ended it") { saved.position.ended = true; }
  FitState state;
  Training training;
  state.resume({}, std::move(saved));
  train::EarlyStopping same;
  train::Callbacks others{[](train::EpochRecord&) {}, std::ref(same)};
  state.end_without_fit(others, training);
  CHECK(same.best.epoch == 2);
  CHECK(state.seed_of({}, sk::Seed{3}).value == 3);
}

TEST_CASE("why callbacks could not be written down is forgotten where another training is loaded") {
  struct Broken {
    void on_update(std::int64_t) const {}
    void serialize(train::OutArchive&, unsigned) const { throw sk::ArgumentError("no state"); }
    void serialize(train::InArchive&, unsigned) const {}
  };
  FitState state;
  Training training;
  train::Callbacks broken{Broken{}};
  state.begin(order, 4, broken, training);
  state.keep_callbacks();
  state.forget_callbacks();
  CHECK(state.callback_failure().reason == "no state");
  state.resume({}, records());
  CHECK(!state.callback_failure().failed());
}

TEST_CASE("sums that are each rank's own are written for each of them, and each takes its own back") {
  const train::detail::FitFacts facts{.rank = 1, .ranks = 2, .local_sums = true};
  Training training;
  training.others = 100;  // what the other rank adds to each number
  train::TrainingPosition at;
  at.sums = {1, 2, 3};
  train::detail::reduce_sums(at, facts, training);
  CHECK(at.sums.loss == 101);
  CHECK(at.sums.weight == 102);
  CHECK(at.sums_of_ranks == std::vector<double>{100, 100, 100, 101, 102, 103});
  train::FileRecords saved = records();
  saved.position.sums = {5, 6, 7};
  saved.position.sums_of_ranks = {10, 20, 30, 1, 2, 3};
  FitState state;
  SECTION("of as many ranks") {
    state.resume(facts, std::move(saved));
    CHECK(state.position().sums.loss == 1);
    CHECK(state.position().sums.correct == 3);
  }
  SECTION("of another number: rank 0 has those of all") {
    saved.position.sums_of_ranks = {1, 2, 3};
    state.resume(facts, std::move(saved));
    CHECK(state.position().sums.loss == 0);
  }
  SECTION("where all have the same: none are written for each") {
    train::detail::reduce_sums(at, {.rank = 1, .ranks = 2}, training);
    CHECK(at.sums_of_ranks.empty());
    CHECK(at.sums.loss == 101);
  }
}
