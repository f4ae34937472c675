// SPDX-License-Identifier: Apache-2.0
// Periodic synchronisation and averages of models over threads at 1, 2, 3, 4 and 7 ranks. tests/distributed/model_average.cpp has
// five of these ten cases over processes.
#include "../../support/at_every_size.hpp"
#include "../../support/periodic_cases.hpp"

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include "../../support/temporary_folder.hpp"

namespace cases = periodic_cases;
namespace sk = skein;

using support::at_every_size;

namespace {
struct Often : skein::parallel::Period<4> {};
template <class When, class... Given> constexpr bool takes =
    std::same_as<decltype(skein::parallel::ModelAverage{std::declval<skein::ThreadComm&>(), std::declval<Given>()...}),
                 skein::parallel::ModelAverage<skein::ThreadComm, When>>;
static_assert(takes<Often, Often> && takes<skein::parallel::Period<2>, skein::parallel::Period<2>>);
static_assert(takes<Often, skein::parallel::ModelAverageOptions, Often>);
struct Outer : skein::parallel::DiLoCo<> {};
using WithOuter = skein::parallel::ModelAverage<skein::ThreadComm, Often, skein::optim::Sgd>;
static_assert(
    std::same_as<decltype(skein::parallel::ModelAverage{std::declval<skein::ThreadComm&>(), Often{}, Outer{}}), WithOuter>);
static_assert(
    std::same_as<decltype(skein::parallel::ModelAverage{std::declval<skein::ThreadComm&>(), {.keep = 0.5}, Often{}, Outer{}}),
                 WithOuter>);
}  // namespace

TEST_CASE("an average after every step of plain SGD is DataParallel", "[parallel]") {
  at_every_size([](auto& w) { cases::is_data_parallel(w); });
}
TEST_CASE("between exchanges each rank steps with its own gradients", "[parallel]") {
  at_every_size([](auto& w) { cases::drifts(w); });
}
TEST_CASE("averages leave frozen parameters as they are", "[parallel]") {
  at_every_size([](auto& w) { cases::keeps_frozen(w); });
}
TEST_CASE("models are averaged by samples", "[parallel]") {
  at_every_size([](auto& w) { cases::weighs(w); });
}
TEST_CASE("models are averaged in their steps and epochs", "[parallel]") {
  at_every_size([](auto& w) { cases::averages_on_time(w); });
}
TEST_CASE("fragments of a model are averaged each in its own step", "[parallel]") {
  at_every_size([](auto& w) { cases::streams(w); });
}
TEST_CASE("an outer optimizer steps along the averaged way", "[parallel]") {
  at_every_size([](auto& w) { cases::steps_outward(w); });
}
TEST_CASE("a period for each level of groups that nest", "[parallel]") {
  at_every_size([](auto& w) { cases::has_levels(w); });
}
TEST_CASE("ranks with other options of averaging refuse to start", "[parallel]") {
  at_every_size([](auto& w) { cases::refuses_other_options(w); });
}
TEST_CASE("policies that synchronise now and then learn", "[parallel]") {
  at_every_size([](auto& w) { cases::learns(w); });
}

TEST_CASE("an epoch that ends with an average of the warm-up has had its average", "[parallel]") {
  using namespace sk::parallel;
  std::vector<float> parameters(16, 1.0f), gradients(32);
  Replica<float, sk::Cpu> replica;
  replica.parameters = {parameters.data(), 16};
  replica.gradients = {gradients.data(), 32};
  replica.stored = 16;
  sk::SelfComm self;
  auto state =
      ModelAverage{self, {.weighted = false, .warm_up = 1}, Period<1, Every::epoch>{}, DiLoCo{}}.bind(replica);  // has a momentum
  state.start();
  (void)state.before_step(1);
  std::fill(parameters.begin(), parameters.end(), 2.0f);
  CHECK(state.after_step({.step = 1, .samples = 4}));
  const std::vector<float> averaged = parameters;
  CHECK_FALSE(state.epoch_ends(0));
  CHECK(parameters == averaged);
  (void)state.after_step({.step = 2, .samples = 4});
  CHECK(state.epoch_ends(1));
  (void)state.after_step({.step = 100, .samples = 4});
  CHECK(state.epoch_ends(2));
  state.start();  // a file of another policy was loaded, which is at step 10
  (void)state.after_step({.step = 11, .samples = 4});
  CHECK(state.epoch_ends(0));
  (void)state.after_step({.step = 12, .samples = 4});
  CHECK(state.finish());
}

TEST_CASE("a sum that a fit has left under way is none of the weights that the next one begins with", "[parallel]") {
  using namespace sk::parallel;
  support::on_threads(2, [](sk::ThreadComm& world) {
    std::vector<float> parameters(16), gradients(32);
    Replica<float, sk::Cpu> replica;
    replica.parameters = {parameters.data(), 16};
    replica.gradients = {gradients.data(), 32};
    replica.stored = 16;
    const auto check = [&](auto policy, bool saves) {
      auto state = policy.bind(replica);
      std::fill(parameters.begin(), parameters.end(), 1.0f);
      state.start();
      for (const std::int64_t step : {1, 2}) {
        (void)state.before_step(step);
        (void)state.after_step({.step = step, .samples = 4});  // the second begins an exchange
      }
      if (saves) state.before_save();
      std::fill(parameters.begin(), parameters.end(), 5.0f);  // a callback has thrown, and a file was loaded
      state.start();
      (void)state.before_step(3);
      RANK_CHECK(!state.after_step({.step = 3, .samples = 4}));
      RANK_CHECK(parameters == std::vector<float>(16, 5.0f));
    };
    for (const bool saves : {false, true}) {
      check(ModelAverage{world, {.delay = 1}, Period<2>{}}, saves);
      check(ModelAverage{world, {.delay = 1}, Period<2>{}, DiLoCo{}}, saves);
      check(PostLocalSgd{world, {.delay = 1}, SyncFirst<1>{}, Period<2>{}}, saves);
    }
  });
}

TEST_CASE("options of averaging that make no sense are refused", "[parallel]") {
  sk::SelfComm self;
  const auto refused = [&](sk::parallel::ModelAverageOptions options) {
    try {
      (void)cases::train(sk::parallel::ModelAverage{self, options, sk::parallel::Period<4>{}});
    } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK(refused({.fragments = 0}).find("ModelAverage: .fragments is at least 1") != std::string::npos);
  CHECK(refused({.first = -1}).find(".first and .warm_up are numbers of steps") != std::string::npos);
  CHECK(refused({.delay = -1}).find(".delay is a number of steps") != std::string::npos);
  CHECK(refused({.delay = 4}).find(".delay must be shorter than the period") != std::string::npos);
  CHECK(refused({.keep = 1}).find(".keep is a share") != std::string::npos);
  CHECK(refused({.warm_up = 4, .delay = 1}).find(".warm_up and .delay do not go together") != std::string::npos);
  CHECK(refused({.delay = 3}).empty());
  const sk::optim::Sgd grouped{.lr = 0.7f, .groups = sk::optim::frozen("0.*")};
  CHECK_THROWS_WITH(
      (void)cases::train(sk::parallel::ModelAverage{self, sk::parallel::Period<4>{}, sk::parallel::DiLoCo{grouped}}),
      Catch::Contains("the outer optimizer has .groups"));
}

TEST_CASE("an average that has not arrived when its period ends is refused, on all ranks", "[parallel]") {
  using namespace sk::parallel;
  support::on_threads(2, [](sk::ThreadComm& world) {
    const auto said = [&](const auto& policy, int epochs) {  // of 4 steps
      try {
        (void)cases::train(policy, cases::Job<>{.epochs = epochs});
      } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
      return std::string();
    };
    const ModelAverageOptions late{.delay = 5};
    RANK_CHECK(said(ModelAverage{world, {.delay = 4}, Period<1, Every::epoch>{}}, 3).empty());
    RANK_CHECK(said(ModelAverage{world, late, Period<1, Every::epoch>{}}, 1).empty());
    RANK_CHECK(said(ModelAverage{world, late, Period<2, Every::epoch>{}}, 5).empty());
    for (const std::string& m : world.all_gather(said(ModelAverage{world, late, Period<1, Every::epoch>{}}, 3)))
      RANK_CHECK(m.find(".delay is 5 steps and longer than the period, which has 4") != std::string::npos);
  });
}

TEST_CASE("a training with an outer optimizer goes on with the same bits", "[parallel]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "outer.skein";
  sk::spawn(2,
            [&](sk::ThreadComm& world) {
              const auto run = [&](bool from_file) {
                cases::Even points;
                auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
                using Model = cases::cases::Model;
                // [quote diloco]
                Model model{sk::Seed{3}};
                sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f},
                                    sk::parallel::ModelAverage{world, sk::parallel::Period<4>{}, sk::parallel::DiLoCo{}}};
                // [end]
                sk::FitOptions options{.epochs = 4, .batch = 24, .progress = false, .threads = 1};
                if (from_file) trainer.load(path);
                else
                  options.callbacks.add([&](sk::train::EpochRecord& r) {
                    if (r.epoch == 2) trainer.save(path);
                  });
                trainer.fit(data, options);
                const auto p = std::as_const(model).parameters();
                return cases::Values(p.begin(), p.end());
              };
              const cases::Values whole = run(false), resumed = run(true);
              RANK_CHECK(whole == resumed);
            },
            {.deadline = 120});
}

TEST_CASE("a training that loads a file without an outer optimizer begins with none of what its own has kept", "[parallel]") {
  const support::TemporaryFolder folder;
  sk::SelfComm self;
  cases::Even points;
  const auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  sk::FitOptions options{.epochs = 2, .batch = 24, .progress = false, .threads = 1};
  {
    cases::cases::Model model{sk::Seed{3}};
    sk::Trainer plain{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}};
    plain.fit(data, options);
    plain.save(folder / "plain");
  }
  const auto after_loading = [&](bool fits_before) {
    cases::cases::Model model{sk::Seed{3}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f},
                        sk::parallel::ModelAverage{self, sk::parallel::Period<4>{}, sk::parallel::DiLoCo{}}};
    options.epochs = 3;
    if (fits_before) trainer.fit(data, options);
    trainer.load(folder / "plain");
    trainer.fit(data, options);
    const auto p = std::as_const(model).parameters();
    return cases::Values(p.begin(), p.end());
  };
  CHECK(after_loading(true) == after_loading(false));
}

TEST_CASE("a file of another outer optimizer is refused before anything is changed, the kept weights among it", "[parallel]") {
  const support::TemporaryFolder folder;
  sk::SelfComm self;
  cases::Even points;
  const auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  const auto with = [&](const auto& outer, const auto& use) {
    cases::cases::Model model{sk::Seed{3}};
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f},
                        sk::parallel::ModelAverage{self, sk::parallel::Period<4>{}, outer}};
    sk::FitOptions options{.epochs = 2, .batch = 24, .progress = false, .threads = 1};
    use(trainer, options);
  };
  with(sk::parallel::DiLoCo{}, [&](auto& trainer, auto& options) {
    trainer.fit(data, options);
    trainer.save(folder / "other");
  });
  with(sk::parallel::DiLoCo{sk::optim::Adam{.lr = 0.01f}}, [&](auto& trainer, auto& options) {
    options.callbacks.add([](sk::train::EpochRecord& r, sk::train::FitControl& c) {
      if (r.epoch == 1) c.keep_weights();
      else c.stop("half of it");
    });
    options.epochs = 3;
    trainer.fit(data, options);
    trainer.save(folder / "before");
    CHECK_THROWS_WITH(trainer.load(folder / "other"), Catch::Contains("another outer optimizer"));
    trainer.save(folder / "after");
    const bool same = support::read_file(folder / "after") == support::read_file(folder / "before");
    CHECK(same);
  });
}
