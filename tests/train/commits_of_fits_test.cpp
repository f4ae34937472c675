// SPDX-License-Identifier: Apache-2.0
// Which commits a fit makes, takes and leaves: of steps that make several updates, of another fit, by policies whose ranks drift.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/text.hpp>
#include <skein/data/map.hpp>
#include <skein/data/normalization.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/parallel/simulate/simulated.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/commit_training.hpp>
#include <skein/train/commit_writer.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/weights_copy.hpp>

#include "../support/points.hpp"
#include "../support/seed_of_start.hpp"
#include "../support/stop_at.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Model = sk::Model<nn::Sequential<nn::Linear<7>, nn::Tanh, nn::Linear<3>>, sk::Shape<5>>;
using Pipeline = sk::parallel::Pipeline<nn::Sequential<nn::Linear<7>, nn::Tanh>, nn::Sequential<nn::Linear<3>>>;
using Steps = std::vector<std::int64_t>;

struct Points : support::Points {
  explicit Points(std::size_t n) : support::Points(n, {1, {5}}) {}
};
sk::FitOptions options_of(int epochs) { return {.epochs = epochs, .batch = 12, .progress = false, .threads = 1}; }
Steps commits_in(const std::string& path) { return sk::train::CommitFolder(path).steps(); }
}  // namespace

TEST_CASE("a step of several updates makes a commit when it passes a multiple of .every", "[train]") {
  const support::TemporaryFolder folder;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    Pipeline pipeline{world, {.schedule = sk::parallel::PipelineSchedule::pipedream, .micro_batch = 4}};
    auto model = pipeline.model<sk::Shape<5>>(sk::Seed{3});
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f}, pipeline};
    sk::FitOptions o = options_of(3);
    o.checkpoint = {.folder = folder / "run", .every = 5, .keep = 50};
    const Points points(48);
    trainer.fit(points.set(), o);
  });
  CHECK(commits_in(folder / "run") == Steps{36, 30, 27, 21, 15, 12, 6});  // of updates 3, 6, 9, ... 36
}

TEST_CASE("a pipeline by PipeDream that was stopped within an epoch goes on with the same bits", "[train]") {
  const support::TemporaryFolder folder;
  const auto weights = [&](const std::string& name, std::int64_t stop_after) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      Pipeline pipeline{world, {.schedule = sk::parallel::PipelineSchedule::pipedream, .micro_batch = 4}};
      auto model = pipeline.model<sk::Shape<5>>(support::seed_of_start(folder / name));
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f, .momentum = 0.9}, pipeline};
      sk::FitOptions o = options_of(3);
      o.callbacks = {support::StopAt{stop_after}};
      o.checkpoint = {.folder = folder / name, .every = 5};
      const Points points(48);
      trainer.fit(points.set(), o);
      trainer.save(folder / "file");
    });
    Model whole;
    whole.load(folder / "file");
    return std::vector<float>(whole.parameters().begin(), whole.parameters().end());
  };
  const auto whole = weights("whole", 1000);
  for (const int stop_after : {4, 7, 11}) {
    const std::string name = sk::text("run {}", stop_after);
    CHECK(weights(name, stop_after) != whole);
    CHECK(weights(name, 1000) == whole);
  }
}

namespace {
/// An exception at the end of the first epoch, behind its last commit.
struct FailsFirst {
  bool fails = false;
  void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) {
    if (fails) throw std::runtime_error("of the user");
  }
};
}  // namespace

TEST_CASE("an epoch that only its end was missing of has the rate of its last step, which made several updates", "[train]") {
  const support::TemporaryFolder folder;
  const auto fit = [&](const std::string& name, bool fails) {
    std::vector<double> rates(2);
    sk::spawn(2, [&](sk::ThreadComm& world) {
      Pipeline pipeline{world, {.schedule = sk::parallel::PipelineSchedule::pipedream, .micro_batch = 4}};
      auto model = pipeline.model<sk::Shape<5>>(support::seed_of_start(folder / name));
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f}, pipeline};
      sk::FitOptions o = options_of(2);
      o.schedule = sk::optim::cosine();
      o.callbacks = {FailsFirst{fails}};
      o.checkpoint = {.folder = folder / name, .every = 3};
      const Points points(44);  // batches of 3, 3, 3 and 2 micro-batches
      const sk::History history = trainer.fit(points.set(), o);
      if (world.rank() == 0)
        for (std::size_t e = 0; e < 2; ++e) rates[e] = history.epochs()[e].learning_rate;
    });
    return rates;
  };
  const auto whole = fit("whole", false);
  CHECK_THROWS(fit("run", true));
  CHECK(fit("run", false) == whole);
}

TEST_CASE("a fit that goes on from a file of a later step does not remove the commits of another fit", "[train]") {
  const support::TemporaryFolder folder;
  const Points points(48);
  const auto data = points.set();
  const auto fit = [&](const std::string& load, const std::string& run, int epochs) {
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
    if (!load.empty()) trainer.load(load);
    sk::FitOptions o = options_of(epochs);
    if (!run.empty()) o.checkpoint = {.folder = run, .keep = 2};
    trainer.fit(data, o);
    if (load.empty() && run.empty()) trainer.fit(data, o), trainer.save(folder / "second");
  };
  fit("", folder / "run", 2);
  fit("", "", 5);
  CHECK_THROWS_WITH(
      fit(folder / "second", folder / "run", 7),
      Catch::Contains("is a commit of another fit, which began after 0 epochs and 0 steps, this one after 5 and 20"));
  CHECK(commits_in(folder / "run") == Steps{8, 4});
  fit(folder / "second", folder / "other", 7);
  CHECK(commits_in(folder / "other") == Steps{48, 44});
  fit(folder / "other/step_00000048", folder / "other", 8);  // of the same fit
  CHECK(commits_in(folder / "other") == Steps{52, 48});
}

namespace {
/// Keeps the weights of the first epoch; stops after the second.
struct KeepsFirst {
  bool stops = false;
  void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) {
    if (r.epoch == 1) c.keep_weights();
    if (stops && r.epoch == 2) c.stop("the batch system's limit of time");
  }
};
/// A program of four epochs; the weights that it ends with are in the file.
void keeps_first(auto& model, const auto& policy, const sk::train::FitCheckpoint& commits, const std::string& load, bool stops,
                 const std::string& file) {
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, policy};
  if (!load.empty()) trainer.load(load);
  if (file.ends_with("again")) return trainer.save(file);
  sk::FitOptions o = options_of(4);
  o.checkpoint = commits;
  o.callbacks = {KeepsFirst{stops}};
  const Points points(48);
  trainer.fit(points.set(), o);
  trainer.save(file);
}
std::vector<float> weights_in(const std::string& path) {
  Model model{sk::Seed{9}};
  model.load(path);
  return {model.parameters().begin(), model.parameters().end()};
}
template <class Program> void check_kept(const Program& run) {
  const support::TemporaryFolder folder;
  run({}, "", false, folder / "whole");
  run({.folder = folder / "run"}, "", true, folder / "stopped");
  const std::vector<float> whole = weights_in(folder / "whole");
  CHECK(weights_in(folder / "run/step_00000008") != whole);
  run({}, folder / "run/step_00000008", false, folder / "of commit");
  CHECK(weights_in(folder / "of commit") == whole);
  run({}, folder / "run/step_00000008", false, folder / "again");  // saved as it was loaded
  run({}, folder / "again", false, folder / "of copy");
  CHECK(weights_in(folder / "of copy") == whole);
  run({}, folder / "stopped", false, folder / "of stopped");
  CHECK(weights_in(folder / "of stopped") == whole);
}
}  // namespace

TEST_CASE("weights that a callback has kept come with a file or commit that is loaded, and go into the next file", "[train]") {
  check_kept([](const sk::train::FitCheckpoint& commits, const std::string& load, bool stops, const std::string& file) {
    Model model{sk::Seed{load.empty() ? 3u : 77u}};
    keeps_first(model, sk::parallel::Alone{}, commits, load, stops, file);
  });
  check_kept([](const sk::train::FitCheckpoint& commits, const std::string& load, bool stops, const std::string& file) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      Pipeline pipeline{world, {.micro_batch = 4}};
      auto model = pipeline.model<sk::Shape<5>>(sk::Seed{load.empty() ? 3u : 77u});
      keeps_first(model, pipeline, commits, load, stops, file);
    });
  });
}

TEST_CASE("what one rank alone cannot do ends the fit of all, and each says what it was", "[train]") {
  const support::TemporaryFolder folder;
  support::write_file(folder / "file", "x", 1);
  const auto said = [&](const char* on_0, const char* on_1, const auto& act) {
    std::vector<std::string> words(2);
    sk::spawn(2, [&](sk::ThreadComm& world) {
      Model model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
      sk::train::WeightsCopy<std::remove_cvref_t<decltype(trainer.train_step())>> kept;
      sk::train::detail::FittedTrainingOf training(trainer.train_step(), kept);
      sk::train::CommitFolder run(folder / (world.rank() == 0 ? on_0 : on_1));
      try {
        act(run, training);
      } catch (const sk::Error& e) { words[static_cast<std::size_t>(world.rank())] = e.what(); }
    });
    return words;
  };
  const auto lock = [](sk::train::CommitFolder& run, auto& training) { sk::train::detail::lock_for_ranks(run, training); };
  const auto find = [](sk::train::CommitFolder& run, auto& training) { (void)sk::train::find_commit(run, training); };
  const auto write = [](sk::train::CommitFolder& run, auto& training) {
    sk::train::CommitWriter writer(run, {}, training);
    writer.commit({{}, {}, {}, {}, {}});
  };
  auto words = said("file", "run", lock);
  CHECK_THAT(words[0], Catch::Contains("file"));
  CHECK_THAT(words[1], Catch::Contains("rank 0 cannot use the .checkpoint folder ") && !Catch::Contains("all ranks share"));
  words = said("run", "file", find);
  CHECK_THAT(words[0], Catch::Contains("rank 1 cannot use the .checkpoint folder ") && Catch::Contains("cannot be read"));
  CHECK_THAT(words[1], Catch::Contains("the folder cannot be read: Not a directory"));
  std::filesystem::create_directories(folder / "damaged/step_00000004");  // on one node; the other would begin anew
  words = said("damaged", "run", find);
  CHECK_THAT(words[0], Catch::Contains("damaged: has commits of a training, and none of them is whole: "));
  CHECK_THAT(words[1], Catch::Contains("run: has commits of a training on rank 0, and none of them is whole: ") &&
                           Catch::Contains("all ranks share"));
  std::filesystem::create_directory(folder / "run");
  words = said("run", "nowhere/run", write);
  CHECK_THAT(words[0], Catch::Contains("could not be written: rank 1: ") &&
                           Catch::Contains("all ranks share, or it was removed meanwhile"));
  words = said("nowhere/run", "run", write);  // rank 0 has made the folder
  CHECK_THAT(words[1], Catch::Contains("could not be written: rank 0: ") && !Catch::Contains("all ranks share"));
  words = said("run", "file", write);
  CHECK_THAT(words[0], Catch::Contains("could not be written: rank 1: ") && !Catch::Contains("all ranks share"));
  for (const char* name : {"here", "there"}) std::filesystem::create_directory(folder / name);  // both can write
  words = said("here", "there", write);
  CHECK_THAT(words[0], Catch::Contains("rank_00001.safetensors: is not there, and its rank has written ") &&
                           Catch::Contains("all ranks share"));
  CHECK_THAT(words[1], Catch::Contains("could not be written: rank 0: ") && Catch::Contains("all ranks share"));
  CHECK(commits_in(folder / "here").empty());
  words = said("here", "here", write);
  CHECK(words == std::vector<std::string>(2));
  CHECK(commits_in(folder / "here") == Steps{0});
  words = said("here", "damaged", find);  // rank 1 sees a commit, and cannot read it
  for (const std::string& text : words)
    CHECK_THAT(text, Catch::Contains("rank 1 finds no commit in ") && Catch::Contains("damaged/step_00000004") &&
                         !Catch::Contains("all ranks share"));
  for (const auto& [name, step] : {std::pair{"four", "4"}, std::pair{"eight", "8"}}) {  // each reads its own well
    std::filesystem::create_directory(folder / name);
    std::filesystem::copy(folder / "here/step_00000000", folder / (std::string(name) + "/step_0000000" + step));
  }
  words = said("four", "eight", find);
  for (const std::string& text : words)
    CHECK_THAT(text, Catch::Contains("rank 1 finds no commit in ") && Catch::Contains("all ranks share"));
  words = said("here", "nowhere", find);
  CHECK_THAT(words[0], Catch::Contains("rank 1 finds no commit in ") && Catch::Contains("all ranks share"));
}

namespace {
/// Adds to a weight of its rank at a step, or has all ranks ended by a signal there.
struct Disturbs {
  Model* model;
  std::int64_t changed_at, signal_at;
  void on_update(std::int64_t step) const {
    if (step == changed_at) {
      const auto weights = model->modify();
      weights.data()[3] += 0.25f;
    }
    if (step == signal_at) ::raise(SIGUSR1);
  }
};
struct Trial {
  const char* name;
  sk::train::FitCheckpoint checkpoint;
  std::int64_t signal_at, last;  // the last commit that is of before the change
  const char* when;
};
/// 4 epochs of 5 steps, in step 8 of which rank 1 changes a weight where `changes`.
template <class MakePolicy>
std::vector<float> fit_of(int ranks, const std::string& folder, const Trial& trial, bool changes, const MakePolicy& make) {
  std::vector<float> weights;
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    Model model{support::seed_of_start(folder)};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f, .momentum = 0.9f}, make(world)};
    sk::FitOptions o = options_of(4);
    o.interrupt.also = SIGUSR1;
    o.checkpoint = trial.checkpoint;
    o.checkpoint.folder = folder;
    const bool disturbed = changes && world.rank() == 1;
    o.callbacks = {Disturbs{&model, disturbed ? 8 : 0, disturbed ? trial.signal_at : 0}};
    const Points points(60);
    trainer.fit(points.set(), o);
    if (world.rank() == 0) weights.assign(model.parameters().begin(), model.parameters().end());
  });
  return weights;
}
std::string said(const auto& work) {
  try {
    work();
  } catch (const std::exception& e) { return e.what(); }
  return "";
}
}  // namespace

TEST_CASE("where ranks have other weights there is no commit, and the next start goes on from before they had", "[train]") {
  const std::vector<Trial> trials{{"every", {.every = 3}, 0, 6, "before the commit of step 9"},
                                  {"at once", {.every = 4}, 0, 4, "before the commit of step 8"},
                                  {"a thread writes", {.every = 3, .async = true}, 0, 6, "before the commit of step 9"},
                                  {"epochs", {.every = 0}, 0, 5, "before the commit of step 10"},
                                  {"a signal", {.every = 7}, 9, 7, "at the end of fit"},
                                  {"a signal, a thread writes", {.every = 7, .async = true}, 9, 7, "at the end of fit"},
                                  {"the end", {.every = 50}, 0, -1, "at the end of fit"}};
  const auto check = [](int ranks, const std::vector<Trial>& of, const auto& make) {
    for (const Trial& trial : of) {
      CAPTURE(ranks, trial.name);
      const support::TemporaryFolder folder;
      const std::string run = folder / "run";
      const std::vector<float> undisturbed = fit_of(ranks, folder / "undisturbed", trial, false, make);
      const std::string text = said([&] { (void)fit_of(ranks, run, trial, true, make); });
      CHECK_THAT(text, Catch::Contains(sk::text("the ranks have other weights {}: 0.weight is of hash", trial.when)));
      CHECK_THAT(text, Catch::Contains(ranks > 2 ? "most ranks have the same, and rank 1 differs" : "on rank 1"));
      const Steps commits = commits_in(run);
      CHECK((commits.empty() ? -1 : commits.front()) == trial.last);
      CHECK(fit_of(ranks, run, trial, false, make) == undisturbed);
    }
  };
  check(2, trials, [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; });
  check(3, {trials[0], trials[2]}, [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; });
  // Its owner's value takes the place of the weight in the next step.
  check(3, {trials[1]}, [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}}; });
}

TEST_CASE("a commit that a fit refuses has changed nothing of its training", "[train]") {
  const support::TemporaryFolder folder;
  const Points points(48);
  const sk::data::Normalization halved{.mean = {0.0}, .deviation = {2.0}}, shifted{.mean = {0.5}, .deviation = {1.0}};
  const auto fit = [&](Model& model, auto& trainer, const sk::data::Normalization& normalization, int epochs) {
    sk::FitOptions o = options_of(epochs);
    o.checkpoint = {.folder = folder / "run"};
    trainer.fit(sk::data::map(points.set(), normalization), o);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  {
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
    trainer.keep(halved);
    trainer.keep("unit", std::string("metre"));
    fit(model, trainer, halved, 3);
  }
  Model model{sk::Seed{9}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  trainer.keep("unit", std::string("mile"));
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  const auto refused = [&](const sk::data::Normalization& normalization, int epochs) {
    const std::string words = said([&] { fit(model, trainer, normalization, epochs); });
    CHECK(std::vector<float>(model.parameters().begin(), model.parameters().end()) == before);
    CHECK(trainer.template kept<std::string>("unit") == "mile");
    CHECK(trainer.train_step().steps() == 0);
    return words;
  };
  CHECK_THAT(refused(halved, 2), Catch::Contains("its weights are not those of 2 epochs"));
  CHECK_THAT(refused(shifted, 4),
             Catch::Contains("fit, which goes on from the .checkpoint folder: the normalization that is kept"));
  CHECK(fit(model, trainer, halved, 4) != before);
  CHECK(trainer.kept<std::string>("unit") == "metre");
  CHECK(trainer.train_step().steps() == 16);
}

TEST_CASE("where one rank cannot read a commit, no rank takes anything of it", "[train]") {
  const support::TemporaryFolder folder;
  const Points points(48);
  std::vector<std::string> words(2);
  std::vector<int> changed(2);
  sk::spawn(2, [&](sk::ThreadComm& world) {
    Model model{sk::Seed{3}};
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::DataParallel{world}};
    sk::FitOptions o = options_of(1);
    o.checkpoint = {.folder = folder / "run"};
    trainer.fit(points.set(), o);
    const auto weights = [&] { return std::vector<float>(model.parameters().begin(), model.parameters().end()); };
    trainer.fit(points.set(), options_of(1));
    const std::vector<float> before = weights();
    sk::train::WeightsCopy<std::remove_cvref_t<decltype(trainer.train_step())>> kept;
    sk::train::detail::FittedTrainingOf training(trainer.train_step(), kept);
    const auto rank = static_cast<std::size_t>(world.rank());
    words[rank] =
        said([&] { (void)sk::train::detail::load_commit(folder / (rank == 0 ? "run/step_00000004" : "none"), training); });
    changed[rank] = weights() != before;
    world.barrier();
    (void)sk::train::detail::load_commit(folder / "run/step_00000004", training);
    changed[rank] += weights() != before ? 0 : 1;
  });
  CHECK_THAT(words[0], Catch::Contains("fit: rank 1 could not load "));
  CHECK_THAT(words[1], Catch::Contains("cannot be loaded: "));
  CHECK(changed == std::vector<int>(2));
}

TEST_CASE("where ranks drift, the bits with .async do not follow how long the disk takes", "[train]") {
  const Points points(480);
  const auto program = [&] {
    const support::TemporaryFolder folder;
    double sum = 0;
    const auto report = sk::simulate(3, {}, [&](sk::SimComm& world) {
      Model model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.5f},
                          sk::parallel::Gossip{world, sk::parallel::Staleness<2>{}}};
      sk::FitOptions o = options_of(1);
      o.checkpoint = {.folder = folder / "run", .every = 17, .async = true};
      world.compute(1e-6 * world.rank());
      trainer.fit(points.set(), o);
      if (world.rank() == 0)
        for (const float p : model.parameters()) sum += static_cast<double>(p);
    });
    return sk::text("{} {}", sum, report.seconds());
  };
  const std::string once = program();
  for (int i = 0; i < 9; ++i) CHECK(program() == once);
}
