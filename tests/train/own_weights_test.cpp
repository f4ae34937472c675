// SPDX-License-Identifier: Apache-2.0
// Ranks that train weights of their own, as threads: killed or ended by a signal and started again.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/comm/compress/top_k.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/train/own_arrays.hpp>

#include "../support/own_weights_cases.hpp"
#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace own = support::own_weights;

namespace {
template <class Make, class Optimizer>
std::vector<double> on_ranks(int ranks, const Make& make, const Optimizer& optimizer, const own::Disturbed& disturbed) {
  std::vector<double> outcome;
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    const std::vector<double> of_rank = own::fit(world, make, optimizer, disturbed);
    if (world.rank() == 0) outcome = of_rank;
  });
  return outcome;
}

struct KillsAndEnds {
  template <class Make, class Optimizer> void operator()(const char* name, const Make& make, const Optimizer& optimizer) const {
    for (const int ranks : {1, 2, 3}) {
      CAPTURE(name, ranks);
      const support::TemporaryFolder folder;
      const std::vector<double> whole = on_ranks(ranks, make, optimizer, {});
      const std::string killed = folder / "killed", ended = folder / "ended";
      for (const std::int64_t step : {2, 8, 13, 23})
        CHECK_THROWS(on_ranks(ranks, make, optimizer, {.folder = killed, .killed_at = step}));
      CHECK(on_ranks(ranks, make, optimizer, {.folder = killed}) == whole);
      for (const std::int64_t step : {2, 15})
        CHECK_THROWS_AS(on_ranks(ranks, make, optimizer, {.folder = ended, .signal_at = step, .every = 0}), sk::Interrupted);
      CHECK(on_ranks(ranks, make, optimizer, {.folder = ended, .every = 0}) == whole);
    }
  }
};
}  // namespace

TEST_CASE("ranks with weights of their own that are killed, or ended by a signal, go on with the same bits", "[train]") {
  own::some_kinds(KillsAndEnds{});
}
TEST_CASE("so do ranks of each other policy", "[train]") { own::other_kinds(KillsAndEnds{}); }

TEST_CASE("a commit has the residual of each rank of each group", "[train]") {
  using Few = sk::comm::ErrorFeedback<sk::comm::TopK<4>>;
  const support::TemporaryFolder folder;
  const auto run = [&](const own::Disturbed& disturbed) {
    std::vector<std::vector<double>> outcome(4);
    sk::spawn(4, [&](sk::ThreadComm& world) {
      sk::ThreadComm group = world.split(world.rank() / 2, world.rank());
      const auto make = [&](auto& w) {
        return sk::parallel::Compose{sk::parallel::DataParallel{group, sk::parallel::Compress<Few>{}},
                                     sk::parallel::ModelAverage{w, sk::parallel::Period<7>{}}};
      };
      outcome[static_cast<std::size_t>(world.rank())] = own::fit(world, make, sk::optim::Adam{.lr = 0.02f}, disturbed);
    });
    return outcome;
  };
  const auto whole = run({});
  for (const std::int64_t step : {5, 13}) CHECK_THROWS(run({.folder = folder / "killed", .killed_at = step}));
  CHECK(run({.folder = folder / "killed"}) == whole);
}

TEST_CASE("a commit of ranks with weights of their own goes on where all have the same, and on another number of ranks",
          "[train]") {
  const sk::optim::Adam adam{.lr = 0.02f};
  const auto average = [](auto& w) { return sk::parallel::ModelAverage{w, sk::parallel::Period<7>{}}; };
  const auto same = [](auto& w) { return sk::parallel::DataParallel{w}; };
  const support::TemporaryFolder folder;
  for (const char* copy : {"same", "one", "three"})
    CHECK_THROWS_WITH(on_ranks(2, average, adam, {.folder = folder / copy, .killed_at = 5}),
                      Catch::Contains("killed here"));  // commits step 3
  const auto first_step = [&](const char* copy, int ranks, const auto& policy) {
    std::int64_t first = 0;
    on_ranks(ranks, policy, adam, {.folder = folder / copy, .first_step = &first});
    return first;
  };
  CHECK(first_step("same", 2, same) == 4);
  CHECK(first_step("one", 1, average) == 4);
  CHECK(first_step("three", 3, average) == 4);
}

namespace {
/// Throws while `*throws`.
struct Throwing {
  const bool* throws;
  double none[1] = {0};
  std::string_view name() const { return "throwing"; }
  template <class Scalar> void add(sk::train::Rows<Scalar>, sk::train::Labels) const {
    if (*throws) throw own::Killed{};
  }
  std::span<double> sums() { return none; }
  double value() const { return 1; }
};
}  // namespace

TEST_CASE("a file that is saved after a validation that threw has the sums of its epoch once", "[train]") {
  const support::TemporaryFolder folder;
  const support::Points points(78, {1, {5}});
  double expected = 0, loaded = 0;
  sk::spawn(3, [&](sk::ThreadComm& world) {
    bool throws = false;
    sk::FitOptions options{.epochs = 1, .batch = 13, .progress = false, .threads = 1};
    options.validate = points.set();
    options.metrics = {Throwing{&throws}};
    const sk::parallel::ModelAverage average{world, sk::parallel::Period<7>{}};
    own::Model whole{sk::Seed{3}}, broken{sk::Seed{3}}, again{sk::Seed{5}};
    sk::Trainer first{whole, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, average};
    const double of_whole = first.fit(points.set(), options).back().training.accuracy;
    sk::Trainer second{broken, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, average};
    throws = true;
    try {
      second.fit(points.set(), options);
    } catch (const own::Killed&) { throws = false; }
    second.save(folder / "epoch.skein");
    sk::Trainer third{again, sk::nn::CrossEntropy{}, sk::optim::Sgd{}, average};
    third.load(folder / "epoch.skein");
    const double resumed = third.fit(points.set(), options).back().training.accuracy;
    if (world.rank() == 0) loaded = resumed, expected = of_whole;
  });
  CHECK(expected > 0);
  CHECK(loaded == expected);
}
