// SPDX-License-Identifier: Apache-2.0
// `.checkpoint` of fit: commits as a training goes, and what the same program does when it is started again, whatever ended it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/commit_options.hpp>
#include <skein/train/commit_training.hpp>
#include <skein/train/commit_writer.hpp>
#include <skein/train/manifest.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/weights_copy.hpp>

#include "../support/points.hpp"
#include "../support/processes.hpp"
#include "../support/seed_of_start.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

using Net = nn::Sequential<nn::Linear<13>, nn::BatchNorm<>, nn::Tanh, nn::Dropout<sk::Rate<1, 4>>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<5>>;

struct Points : support::Points {
  Points() : support::Points(68, {1, {5}}) {}
};

/// Does something when a step has ended.
struct AtStep {
  std::function<void(std::int64_t, sk::train::FitControl&)> act;
  void on_step_end(const sk::train::StepRecord& r, sk::train::FitControl& c) { act(r.step, c); }
};

/// A callback with a state.
struct Counts {
  void on_step_end(const sk::train::StepRecord&, sk::train::FitControl&) { ++steps; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & steps); }
  int steps = 0;
};

struct Outcome {
  std::vector<float> weights, buffers;
  std::string losses;  // of the history
  std::int64_t steps = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
sk::FitOptions options_of(const std::string& folder, std::int64_t every = 3, bool async = false) {
  sk::FitOptions o{.epochs = 4, .batch = 12, .schedule = sk::optim::cosine(), .progress = false, .threads = 1};
  if (!folder.empty()) o.checkpoint = {.folder = folder, .every = every, .keep = 3, .async = async};
  return o;
}
/// The program that is started again and again: what it ends with.
template <class Policy> Outcome program(const Policy& policy, sk::FitOptions options, int seed = 3) {
  const Points points;
  const auto data = points.set();
  Model model{support::seed_of_start(options.checkpoint.folder.path(), static_cast<std::uint64_t>(seed))};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, policy};
  if (!options.validate) options.validate = data;
  const sk::History history = trainer.fit(data, options);
  Outcome o;
  o.weights.assign(model.parameters().begin(), model.parameters().end());
  o.buffers.assign(model.buffers().begin(), model.buffers().end());
  o.steps = trainer.train_step().steps();
  for (const auto& e : history.epochs()) o.losses += sk::text("{} {} {}\n", e.epoch, e.training.loss, e.validation.loss);
  return o;
}
Outcome alone(const sk::FitOptions& options, int seed = 3) { return program(sk::parallel::SingleProcess{}, options, seed); }
/// On ranks of threads; rank 0's.
template <class Make> Outcome on_ranks(int ranks, const sk::FitOptions& options, Make&& make) {
  Outcome outcome;
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    const Outcome own = program(make(world), options);
    if (world.rank() == 0) outcome = own;
  });
  return outcome;
}
const auto replicated = [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; };
const auto sharded = [](sk::ThreadComm& world) { return sk::parallel::DataParallel{world, sk::parallel::Sharded<2>{}}; };

/// A fit that is stopped at a step as if the program had been killed there: nothing is written after it.
struct Killed {};
sk::FitOptions killed_at(sk::FitOptions options, std::int64_t step) {
  options.callbacks.add(AtStep{[step](std::int64_t s, sk::train::FitControl&) {
    if (s == step) throw Killed{};
  }});
  return options;
}
sk::FitOptions not_killed(sk::FitOptions options) { return killed_at(options, -1); }
/// The weights that a program ends with that fits twice, each time in a folder of its own; killed at that step.
std::vector<float> two_fits(const support::TemporaryFolder& folder, std::int64_t killed, sk::Seed of_first = {}) {
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}};
  sk::FitOptions first = killed_at(options_of(folder / "first"), killed);
  first.seed = of_first;
  trainer.fit(data, first);
  trainer.fit(data, killed_at(options_of(folder / "second"), killed));
  return std::vector<float>(model.parameters().begin(), model.parameters().end());
}

}  // namespace

TEST_CASE("a program that is killed goes on from its last commit, and ends with the same bits", "[train]") {
  const Outcome whole = alone(not_killed(options_of("")));
  REQUIRE(whole.steps == 24);
  for (const auto& [every, async] : {std::pair{1, false}, {3, false}, {6, false}, {0, false}, {1, true}, {3, true}, {0, true}}) {
    const support::TemporaryFolder folder;
    const sk::FitOptions options = options_of(folder / "run", every, async);
    for (const std::int64_t step : {2, 6, 7, 13, 24}) CHECK_THROWS_AS(alone(killed_at(options, step)), Killed);
    CHECK(alone(not_killed(options), 77) == whole);  // its seed is that of the commit
    CHECK(folder.names() == std::vector<std::string>{"run"});
  }
}

TEST_CASE("with commits or without them, a training has the same bits", "[train]") {
  const support::TemporaryFolder folder;
  CHECK(alone(options_of(folder / "run", 5)) == alone(options_of("")));
  CHECK(alone(options_of(folder / "async", 5, true)) == alone(options_of("")));
}

TEST_CASE("the last commits stay, and a finished program that is started again has nothing to do", "[train]") {
  const support::TemporaryFolder folder;
  const std::string run = folder / "deep/run";
  sk::FitOptions options = options_of(run, 5);
  const Outcome whole = alone(options);
  const auto commits = [&] {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(run))
      if (e.path().filename() != ".lock") names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(commits() == std::vector<std::string>{"step_00000015", "step_00000020", "step_00000024"});
  const auto before = std::filesystem::last_write_time(run);
  CHECK(alone(options, 77) == whole);  // the same weights and history, and no step
  CHECK(std::filesystem::last_write_time(run) == before);
  options.epochs = 3;
  CHECK_THROWS_WITH(alone(options), Catch::Contains("step_00000024 has 4 of 3 epochs: its weights are not those of 3 epochs"));
  options.epochs = 6;
  options.schedule = {};
  CHECK(alone(options).steps == 36);
  CHECK(commits() == std::vector<std::string>{"step_00000030", "step_00000035", "step_00000036"});
  Model model{sk::Seed{8}};
  model.load(run + "/step_00000036");  // a commit is read as a file
  CHECK(std::equal(model.parameters().begin(), model.parameters().end(), alone(options).weights.begin()));
  const Points points;  // where nothing can be written, a trainer reads the commit
  std::filesystem::create_directory(folder / "copy");
  std::filesystem::copy(run + "/step_00000036", folder / "copy/step_00000036", std::filesystem::copy_options::recursive);
  Model other{sk::Seed{9}};
  sk::Trainer trainer{other, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}};
  trainer.load(folder / "copy/step_00000036");
  CHECK(std::equal(other.parameters().begin(), other.parameters().end(), model.parameters().begin()));
  CHECK(trainer.evaluate(points.set()).loss > 0);
  const std::filesystem::directory_iterator copies(folder / "copy");
  CHECK(std::distance(begin(copies), end(copies)) == 1);
}

TEST_CASE("a folder that is a link to nothing is named, and so is one under such a link", "[train]") {
  const support::TemporaryFolder folder;
  std::filesystem::create_directory_symlink(folder / "away", folder / "run");
  for (const char* name : {"run", "run/", "run/of/today"})
    CHECK_THROWS_WITH(alone(options_of(folder / name)),
                      folder / "run" +
                          ": is a link that leads nowhere: make the folder that it names, or give .checkpoint another "
                          ".folder");
  CHECK_FALSE(std::filesystem::exists(folder / "away"));
  std::filesystem::create_directory(folder / "away");
  CHECK(alone(options_of(folder / "run")) == alone(options_of("")));
}

TEST_CASE("a training that was killed beyond the epochs that are asked for now has not ended", "[train]") {
  const support::TemporaryFolder folder;
  const sk::FitOptions options = options_of(folder / "run", 5);
  CHECK_THROWS_AS(alone(killed_at(options, 17)), Killed);
  sk::FitOptions fewer = options;
  fewer.epochs = 2;
  CHECK_THROWS_WITH(alone(not_killed(fewer)),
                    Catch::Contains("step_00000015 has 2 of 2 epochs and 3 steps of the next: its weights"));
  CHECK(alone(not_killed(options)) == alone(not_killed(options_of(""))));
}

TEST_CASE("a finished training that is started again has the callbacks of its commit", "[train]") {
  const support::TemporaryFolder folder;
  for (int start = 0; start < 3; ++start) {
    Counts counts;
    sk::FitOptions options = options_of(folder / "run", 5);
    options.callbacks.add(std::ref(counts));
    (void)alone(options);
    CHECK(counts.steps == 24);
  }
}

TEST_CASE("what has the name of a commit and is none is not followed, and is in nobody's way", "[train]") {
  const support::TemporaryFolder folder;
  const std::string run = folder / "run";
  const Outcome whole = alone(not_killed(options_of("")));
  CHECK_THROWS_AS(alone(killed_at(options_of(run), 8)), Killed);
  std::filesystem::create_directory(folder / "precious");
  std::ofstream(folder / "precious/file") << "words";
  std::filesystem::create_directory_symlink("../precious", run + "/step_00000005.partial");
  std::filesystem::create_directory_symlink("../precious", run + "/step_00000001");
  std::filesystem::create_directory_symlink("../precious", run + "/step_00000002.before");
  std::filesystem::create_directory_symlink("../precious", run + "/step_00000012");
  std::filesystem::create_symlink("step_00000009", run + "/step_00000009");  // leads to itself
  REQUIRE(::mkfifo((run + "/step_00000015").c_str(), 0600) == 0);
  std::ofstream(run + "/step_00000018") << "words";
  CHECK(alone(not_killed(options_of(run))) == whole);
  CHECK(std::filesystem::exists(folder / "precious/file"));
  CHECK(sk::train::CommitFolder(run).steps() == std::vector<std::int64_t>{24, 21, 18});
}

TEST_CASE("two processes do not save into one folder, and what a killed one left between two renames is mended", "[train]") {
  const support::TemporaryFolder folder;
  (void)alone(options_of(folder / "run", 20));
  {
    sk::train::CommitFolder first(folder / "run"), second(folder / "run");
    first.lock();
    CHECK_THROWS_WITH(second.lock(0.05),
                      Catch::EndsWith("run: another process writes its checkpoints into this folder: give each "
                                      "job its own"));
  }
  std::ofstream(folder / "file") << "words";
  CHECK_THROWS_WITH(alone(options_of(folder / "file", 20)),
                    Catch::Contains("file: is a file: the .folder of .checkpoint is one"));
  std::filesystem::rename(folder / "run/step_00000024", folder / "run/step_00000024.before");
  std::filesystem::create_directory(folder / "run/step_00000024.partial");
  sk::train::CommitFolder run(folder / "run");
  run.lock();
  CHECK(run.steps() == std::vector<std::int64_t>{24, 20});
  CHECK_FALSE(std::filesystem::exists(run.partial(24)));
}

TEST_CASE("a folder that is removed under a training is made again, and one that another job has taken is refused", "[train]") {
  for (const int ranks : {1, 2}) {
    const support::TemporaryFolder folder;
    sk::FitOptions options = options_of(folder / "run", 3);
    const auto at_step_7 = [&](const std::function<void()>& act) {
      sk::FitOptions o = options;
      o.callbacks.add(AtStep{[act](std::int64_t s, sk::train::FitControl&) {
        if (s == 7) act();
      }});
      return o;
    };
    const Outcome whole = on_ranks(ranks, not_killed(options_of("")), replicated);
    std::atomic<int> first = 0;
    const sk::FitOptions removed = at_step_7([&] {
      if (first++ == 0) std::filesystem::remove_all(folder / "run");
    });
    CHECK(on_ranks(ranks, removed, replicated) == whole);
    sk::train::CommitFolder run(folder / "run");
    CHECK(run.steps() == std::vector<std::int64_t>{24, 21, 18});
    CHECK_NOTHROW(run.lock(0.05));  // which the training has freed

    options = options_of(folder / "other", 3);
    sk::train::CommitFolder other(folder / "other");
    first = 0;
    const sk::FitOptions taken = at_step_7([&] {
      if (first++ > 0) return;
      std::filesystem::rename(folder / "other", folder / "moved");
      other.lock();
    });
    CHECK_THROWS_WITH(on_ranks(ranks, taken, replicated), Catch::Contains("was removed or renamed while this training ran"));
    CHECK(other.steps().empty());
    CHECK(sk::train::CommitFolder(folder / "moved").steps() == std::vector<std::int64_t>{6, 3});
  }
}

TEST_CASE("a stopped fit goes on when the program is started again, one that a callback finished does not", "[train]") {
  const Outcome whole = alone(not_killed(options_of("")));
  const support::TemporaryFolder folder;
  sk::FitOptions options = options_of(folder / "run");
  sk::FitOptions stops = options;
  stops.callbacks = {AtStep{[](std::int64_t s, sk::train::FitControl& c) {
    if (s == 10) c.stop("the batch system's limit of time");
  }}};
  CHECK(alone(stops).steps == 10);
  CHECK(alone(not_killed(options)) == whole);

  sk::FitOptions finishes = options_of(folder / "other");
  finishes.callbacks = {AtStep{[](std::int64_t s, sk::train::FitControl& c) {
    if (s == 10) c.finish("good enough");
  }}};
  CHECK(alone(finishes).steps == 10);
  CHECK(alone(finishes).steps == 10);
}

TEST_CASE("weights that a callback keeps are part of a commit", "[train]") {
  struct KeepsFirst {
    void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) {
      if (r.epoch == 1) c.keep_weights();
    }
  };
  const auto with = [](sk::FitOptions o, std::int64_t killed) {
    o.callbacks = {KeepsFirst{}};
    return killed_at(o, killed);
  };
  const Outcome whole = alone(with(options_of(""), -1));
  REQUIRE(whole.weights != alone(options_of("")).weights);
  const support::TemporaryFolder folder;
  CHECK_THROWS_AS(alone(with(options_of(folder / "run"), 17)), Killed);
  CHECK(alone(with(options_of(folder / "run"), -1)) == whole);

  const auto stopped_at = [&](std::int64_t step,
                              const char* run = "stopped") {  // goes on from its last weights, not the kept ones
    sk::FitOptions o = options_of(folder / run);
    o.callbacks = {KeepsFirst{}, AtStep{[step](std::int64_t s, sk::train::FitControl& c) {
                     if (s == step) c.stop("the batch system's limit of time");
                   }}};
    return o;
  };
  CHECK(alone(stopped_at(17)).steps == 17);
  CHECK(alone(stopped_at(-1)) == whole);

  const Outcome stopped = alone(stopped_at(12, "enough"));  // with two epochs behind it, which is enough after all
  sk::FitOptions two = stopped_at(-1, "enough");
  two.epochs = 2;
  for (int start = 0; start < 2; ++start) CHECK(alone(two).weights == stopped.weights);
  two.epochs = 1;
  CHECK_THROWS_WITH(alone(two), Catch::Contains("step_00000012 has 2 of 1 epochs"));
}

TEST_CASE("a commit of a later format is refused, not skipped for an earlier one", "[train]") {
  const support::TemporaryFolder folder;
  const sk::FitOptions options = options_of(folder / "run", 5);
  (void)alone(options);
  const std::string path = folder / "run/step_00000024/manifest.safetensors";
  auto bytes = support::read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view version = R"("skein_checkpoint":")";
  bytes[text.find(version) + version.size()] = std::byte{'9'};
  support::write_file(path, bytes.data(), bytes.size());
  CHECK_THROWS_AS(alone(options), sk::train::VersionError);
}

TEST_CASE("a damaged commit is skipped for the one before it; where all are damaged, fit refuses to begin anew", "[train]") {
  const Outcome whole = alone(options_of(""));
  const support::TemporaryFolder folder;
  const sk::FitOptions options = options_of(folder / "run", 5);
  (void)alone(options);
  const auto damage = [&](const std::string& name) {
    const std::string path = folder / ("run/" + name);
    auto bytes = support::read_file(path);
    bytes[bytes.size() / 2] ^= std::byte{1};
    support::write_file(path, bytes.data(), bytes.size());
  };
  damage("step_00000024/rank_00000.safetensors");
  damage("step_00000020/manifest.safetensors");
  CHECK(alone(options) == whole);  // from step 15
  for (const char* name : {"step_00000015", "step_00000020", "step_00000024"})
    damage(name + std::string("/rank_00000.safetensors"));
  CHECK_THROWS_WITH(alone(options), Catch::Contains("has commits of a training, and none of them is whole: ") &&
                                        Catch::Contains("move the folder away to begin anew"));
}

TEST_CASE("what is left of a broken commit is swept away, and files of others stay", "[train]") {
  const support::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "run/step_00000099.partial");
  std::filesystem::create_directories(folder / "run/step_x.partial");
  support::write_file(folder / "run/step_00000099.partial/rank_00000.safetensors", "half", 4);
  support::write_file(folder / "run/notes.txt", "mine", 4);
  (void)alone(options_of(folder / "run", 20));
  CHECK_FALSE(std::filesystem::exists(folder / "run/step_00000099.partial"));
  CHECK(std::filesystem::exists(folder / "run/step_x.partial"));
  CHECK(support::read_text(folder / "run/notes.txt") == "mine");
}

TEST_CASE("what .checkpoint cannot mean is said", "[train]") {
  const support::TemporaryFolder folder;
  const auto with = [&](sk::train::FitCheckpoint c) {
    sk::FitOptions o = options_of("");
    o.checkpoint = c;
    return alone(o);
  };
  CHECK_THROWS_WITH(with({.every = 5}), Catch::Contains(".checkpoint has no .folder"));
  CHECK_THROWS_WITH(with({.folder = folder / "run", .every = -1}), Catch::Contains(".checkpoint.every is -1"));
  CHECK_THROWS_WITH(with({.folder = folder / "run", .keep = 1}), Catch::Contains(".checkpoint.keep is 1: keep 2 or more"));
  support::write_file(folder / "file", "x", 1);
  CHECK_THROWS_WITH(with({.folder = folder / "file"}), Catch::Contains("file"));
  const Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}};
  trainer.fit(data, options_of(folder / "run"));
  CHECK_THROWS_WITH(
      trainer.fit(data, options_of(folder / "run")),
      Catch::Contains("is a commit of another fit, which began after 0 epochs and 0 steps, this one after 4 and 24: "
                      "give each fit of a program a .checkpoint.folder of its own"));
  trainer.fit(data, options_of(folder / "second"));
  CHECK(trainer.train_step().steps() == 48);
}

TEST_CASE("the folder of .checkpoint is a path of the standard library too", "[train]") {
  const support::TemporaryFolder folder;
  const std::filesystem::path run = folder / "run";
  sk::FitOptions o = options_of("");
  o.checkpoint = {.folder = run, .every = 5};
  CHECK(o.checkpoint.folder.path() == run.string());
  (void)alone(o);
  CHECK_FALSE(std::filesystem::is_empty(run));
  o.checkpoint = {.folder = std::filesystem::path{}};
  CHECK(o.checkpoint.folder.empty());
}

TEST_CASE("two fits of a program have a folder each, and both go on", "[train]") {
  const support::TemporaryFolder folder;
  const auto both = [&](std::int64_t killed) { return two_fits(folder, killed); };
  CHECK_THROWS_AS(both(16), Killed);
  CHECK_THROWS_AS(both(31), Killed);
  const auto resumed = both(-1);
  std::filesystem::remove_all(folder / "first");
  std::filesystem::remove_all(folder / "second");
  CHECK(both(-1) == resumed);
}

TEST_CASE("the seed of one fit is not the next one's, whether or not the program was killed in the first", "[train]") {
  const support::TemporaryFolder folder;
  const auto both = [&](std::int64_t killed) { return two_fits(folder, killed, sk::Seed{5}); };
  const auto expected = both(-1);
  const auto begin_anew = [&] {
    for (const char* run : {"first", "second"}) std::filesystem::remove_all(folder / run);
  };
  begin_anew();
  CHECK_THROWS_AS(both(16), Killed);
  CHECK(both(-1) == expected);
  begin_anew();
  CHECK_THROWS_AS(both(25), Killed);  // in the first step of the second fit: the first has nothing to do then
  CHECK(both(-1) == expected);
}

TEST_CASE("a finished program that is started again may have another callback, and has nothing to do", "[train]") {
  const support::TemporaryFolder folder;
  for (const bool finishes : {false, true}) {
    const std::string run = folder / (finishes ? "finished" : "ended");
    const auto with = [&](sk::train::Callbacks callbacks) {
      sk::FitOptions o = options_of(run);
      o.callbacks = std::move(callbacks);
      o.callbacks.add(AtStep{[&](std::int64_t step, sk::train::FitControl& c) {
        if (finishes && step == 9) c.finish("enough");
      }});
      return o;
    };
    const Outcome whole = alone(with({sk::train::EarlyStopping{}}));
    CHECK(alone(with({sk::train::ReduceOnPlateau{}, sk::train::EarlyStopping{}})) == whole);
    const auto of_rank = [&](sk::ThreadComm& world) { return sk::parallel::DataParallel{world}; };
    CHECK(on_ranks(2, with({sk::train::ReduceOnPlateau{}}), of_rank) == whole);
  }
}

TEST_CASE("a training of another network in the same folder is told to take one of its own", "[train]") {
  const support::TemporaryFolder folder;
  const Points points;
  const auto data = points.set();
  const auto trained = [&](auto model) {
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}};
    trainer.fit(data, options_of(folder / "run"));
  };
  trained(Model{});
  using Wider = nn::Sequential<nn::Linear<14>, nn::BatchNorm<>, nn::Tanh, nn::Linear<3>>;
  using Deeper = nn::Sequential<nn::Linear<13>, nn::BatchNorm<>, nn::Tanh, nn::Linear<9>, nn::Linear<3>>;
  const auto remedy = Catch::Contains("give this one a .checkpoint.folder of its own");
  CHECK_THROWS_WITH(trained(sk::Model<Wider, sk::Shape<5>>{}), remedy);
  CHECK_THROWS_WITH(trained(sk::Model<Deeper, sk::Shape<5>>{}), remedy);
}

TEST_CASE("ranks write a shard each, and go on from it with the same bits", "[train]") {
  for (const int ranks : {2, 3}) {
    const auto check = [&](const auto& make) {
      const support::TemporaryFolder folder;
      const Outcome whole = on_ranks(ranks, not_killed(options_of(folder / "whole")), make);  // commits average buffers
      const sk::FitOptions options = options_of(folder / "run");
      for (const std::int64_t step : {4, 11}) CHECK_THROWS(on_ranks(ranks, killed_at(options, step), make));
      CHECK(std::filesystem::exists(folder / ("run/step_00000009/" + sk::train::shard_name(ranks - 1))));
      CHECK(on_ranks(ranks, not_killed(options), make) == whole);
      const sk::FitOptions async = options_of(folder / "async", 3, true);
      for (const std::int64_t step : {4, 11}) CHECK_THROWS(on_ranks(ranks, killed_at(async, step), make));
      CHECK(on_ranks(ranks, not_killed(async), make) == whole);
      CHECK(sk::train::CommitFolder(folder / "async").steps() == sk::train::CommitFolder(folder / "run").steps());
    };
    check(replicated);
    check(sharded);
  }
}

TEST_CASE("killed at random instants, started again and again, a program ends with the same bits", "[train]") {
  const support::TemporaryFolder base(support::Where::memory);  // a commit takes a millisecond, kills hit all of its parts
  using Step = std::atomic<std::int64_t>;
  void* const memory = ::mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Step* const seen = new (memory) Step(0);
  for (const auto& [n, writes_async] : {std::pair{1, false}, {2, false}, {1, true}, {2, true}}) {
    const int ranks = n;
    const bool async = writes_async;
    const auto run = [&](const std::string& folder) {
      sk::FitOptions options = options_of(folder, 1, async);
      options.callbacks.add(AtStep{[&](std::int64_t s, sk::train::FitControl&) { *seen = s; }});  // step s - 1 is committed
      const Outcome o = ranks == 1 ? alone(options) : on_ranks(ranks, options, sharded);
      return sk::text("{} {} {}", sk::train::hash64(o.weights.data(), 4 * o.weights.size()),
                      sk::train::hash64(o.buffers.data(), 4 * o.buffers.size()),
                      sk::train::hash64(o.losses.data(), o.losses.size()));
    };
    std::string expected;
    long whole = std::numeric_limits<long>::max();
    for (int i = 0; i < 3; ++i) {  // a busy machine may let one of them stand still
      const std::string name = sk::text("whole{}_{}{}", ranks, i, async ? "async" : "");
      const auto begin = std::chrono::steady_clock::now();
      expected = support::wait_for(support::start_process([&] { return run(base / name); }));
      const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
      whole = std::min(whole, static_cast<long>(passed.count()));
      REQUIRE_THAT(expected, !Catch::StartsWith("signal"));
    }
    int kills = 0, trainings = 0;
    for (std::uint64_t trial = 0; kills < 15 || trainings < 2; ++trial) {
      const std::string folder = base / ((async ? "async" : "run") + std::to_string(ranks) + "_" + std::to_string(trainings));
      *seen = 0;
      const support::Child child = support::start_process([&] { return run(folder); });
      std::this_thread::sleep_for(std::chrono::microseconds(
          sk::random_below(11, static_cast<std::uint64_t>(ranks), trial, static_cast<std::uint64_t>(whole))));
      ::kill(child.pid, SIGKILL);
      const std::string text = support::wait_for(child);
      const std::vector<std::int64_t> steps = sk::train::CommitFolder(folder).steps();
      REQUIRE((steps.empty() ? 0 : steps.front()) >= *seen - (async ? 2 : 1));  // nothing that was committed is lost
      for (const std::int64_t s : steps) REQUIRE_NOTHROW(sk::train::CheckpointReader{sk::train::CommitFolder(folder).commit(s)});
      if (text == "signal 9") ++kills;
      else {
        CAPTURE(ranks, kills, trainings);
        REQUIRE(text == expected);
        ++trainings;
      }
    }
  }
  ::munmap(memory, sizeof(Step));
}

TEST_CASE("ranks that do not see the same folder are told", "[train]") {
  const support::TemporaryFolder folder;
  (void)alone(options_of(folder / "rank0"));
  const auto run = [&](const std::string& other) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const sk::train::CommitFolder run(world.rank() == 0 ? folder / "rank0" : folder / other);
      Model model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}, sk::parallel::DataParallel{world}};
      sk::train::WeightsCopy<std::remove_cvref_t<decltype(trainer.train_step())>> kept;
      sk::train::detail::FittedTrainingOf training(trainer.train_step(), kept);
      (void)sk::train::find_commit(run, training);
    });
  };
  CHECK_THROWS_WITH(run("nothing"), Catch::Contains("rank 1 finds no commit in ") && Catch::Contains("all ranks share"));
  CHECK_NOTHROW(run("rank0"));
  for (const char* name : {"zero0", "zero1"}) {  // two commits of step 0
    const sk::train::CommitFolder run(folder / name);
    std::filesystem::create_directory(folder / name);
    sk::train::CheckpointWriter shard;
    shard.add_object("place", std::string(name));
    run.publish(0, std::vector{run.write_shard(0, 0, shard)}, {}, 2);
  }
  CHECK_THROWS_WITH(
      sk::spawn(2,
                [&](sk::ThreadComm& world) {
                  const sk::train::CommitFolder run(folder / (world.rank() == 0 ? "zero0" : "zero1"));
                  Model model{sk::Seed{3}};
                  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}, sk::parallel::DataParallel{world}};
                  sk::train::WeightsCopy<std::remove_cvref_t<decltype(trainer.train_step())>> kept;
                  sk::train::detail::FittedTrainingOf training(trainer.train_step(), kept);
                  (void)sk::train::find_commit(run, training);
                }),
      Catch::Contains("none of them is whole: ") && Catch::Contains("another rank cannot read it, or reads another"));
}
