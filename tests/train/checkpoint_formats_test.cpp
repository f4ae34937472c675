// SPDX-License-Identifier: Apache-2.0
// Files of every format that was ever written: tests/fixtures/checkpoints has some of each, and they load for ever, with the
// bits that they were saved with. Format 1 is of before the tensors lay as in safetensors; with_names is of a later version of
// the callbacks' object. A new format's files are made by SKEIN_MAKE_CHECKPOINTS=FOLDER test_train "files of the format of
// today", which prints the lines of `corpus`.
#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

#include "../support/points.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

using Mlp = sk::Model<nn::Sequential<nn::Linear<7>, nn::Tanh, nn::Linear<3>>, sk::Shape<5>>;
using LeNet = sk::Model<
    nn::Sequential<nn::Conv2d<3, sk::Kernel<3>>, nn::BatchNorm<>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<3>>,
    sk::Shape<6, 6, 1>>;

/// 61 samples of so many numbers.
struct Samples : support::Points {
  explicit Samples(const sk::Extents& e) : support::Points(61, e) {}
};
struct SaveAt {
  std::int64_t step;
  std::function<void()> save;
  std::int64_t seen = 0;
  void on_step_end(const sk::train::StepRecord& r, sk::train::FitControl& c) {
    ++seen;
    if (r.step == step) save(), c.stop("saved");
  }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & seen); }
};
// clang++ 14 fails on a constant of this type that is not made by a function.
const sk::FitOptions usual = [] { return sk::FitOptions{.epochs = 2, .batch = 16, .progress = false, .threads = 1}; }();

// What each file is of: a training that is asked to save itself, and afterwards to load and go on.
struct MlpOfAdam {
  Mlp model{sk::Seed{3}};
  sk::Trainer<Mlp, nn::CrossEntropy, sk::optim::Adam> trainer{model, {}, {.lr = 0.02f}};
  Samples samples{{1, {5}}};
  void save(const std::string& path) {
    trainer.keep("names", std::vector<std::string>{"left", "right", "other"});
    trainer.fit(samples.set(), usual);
    trainer.save(path);
  }
  void go_on() {
    CHECK(trainer.kept<std::vector<std::string>>("names").at(2) == "other");
    sk::FitOptions longer = usual;
    longer.epochs = 3;
    CHECK(trainer.fit(samples.set(), longer).back().epoch == 3);
  }
};
struct MlpWithinEpoch : MlpOfAdam {
  void save(const std::string& path) {
    sk::FitOptions cut = usual;
    cut.callbacks = {SaveAt{6, [&] { trainer.save(path); }}};
    trainer.fit(samples.set(), cut);
  }
  void go_on() {
    sk::FitOptions rest = usual;
    rest.callbacks = {SaveAt{-1, [] {}}};
    CHECK(trainer.fit(samples.set(), rest).size() == 2);
    CHECK(trainer.train_step().steps() == 8);
  }
};
struct LeNetWithCallbacks {
  LeNet model{sk::Seed{3}};
  sk::Trainer<LeNet, nn::CrossEntropy, sk::optim::Sgd> trainer{model, {}, {.lr = 0.1f, .momentum = 0.9}};
  Samples samples{{3, {6, 6, 1}}};
  sk::FitOptions options() {
    sk::FitOptions o = usual;
    o.epochs = 3;
    o.validate = samples.set();
    o.schedule = sk::optim::cosine();
    o.callbacks = {sk::train::EarlyStopping{.patience = 5}, sk::train::ReduceOnPlateau{}};
    return o;
  }
  void save(const std::string& path) {
    sk::FitOptions cut = options();
    cut.callbacks.add(SaveAt{7, [&] { trainer.save(path); }});
    trainer.fit(samples.set(), cut);
  }
  void go_on() {
    sk::FitOptions rest = options();
    rest.callbacks.add(SaveAt{-1, [] {}});
    CHECK(trainer.fit(samples.set(), rest).size() == 3);
  }
};

/// What a loaded training is known by.
struct Facts {
  std::uint64_t parameters, buffers;  // XXH64 of the logical values of the file's sections
  std::int64_t steps;
  bool operator==(const Facts&) const = default;
};
Facts facts_of(const auto& model, std::int64_t steps) {
  const auto hash = [](const auto& arena) { return sk::train::hash64(arena.data, arena.size * sizeof(float)); };
  return {hash(model.parameters()), hash(model.buffers()), steps};
}
Facts facts_of(auto& training) { return facts_of(training.model, training.trainer.train_step().steps()); }
std::string text_of(const Facts& f) { return sk::text("{}u, {}u, {}", f.parameters, f.buffers, f.steps); }

/// make(name, function): a function that saves to a path.
template <class Visit> void each_training(Visit&& visit) {
  visit("mlp_adam", [](const std::string& path) {
    MlpOfAdam t;
    t.save(path);
    return facts_of(t);
  });
  visit("mlp_within_epoch", [](const std::string& path) {
    MlpWithinEpoch t;
    t.save(path);
    return facts_of(t);
  });
  visit("lenet_callbacks", [](const std::string& path) {
    LeNetWithCallbacks t;
    t.save(path);
    return facts_of(t);
  });
  visit("mlp_sharded", [](const std::string& path) {
    Facts facts{};
    sk::spawn(2, [&](sk::ThreadComm& world) {
      const Samples samples{{1, {5}}};
      Mlp model{sk::Seed{3}};
      sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f},
                          sk::parallel::DataParallel{world, sk::parallel::Sharded<2>{}}};
      trainer.fit(samples.set(), usual);
      trainer.save(path);
      if (world.rank() == 0) facts = facts_of(model, trainer.train_step().steps());
    });
    return facts;
  });
}

std::string fixture(const std::string& name) {
  return (std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures/checkpoints" / name).string();
}

/// The files there are. Of a CPU of another kind the same training has other bits, so what is compared is what the file has.
struct File {
  int format;
  const char* name;
  Facts facts;
};
const File corpus[] = {
    {1, "mlp_adam", {2336410209729744212u, 17241709254077376921u, 8}},
    {1, "mlp_within_epoch", {5475014618904895707u, 17241709254077376921u, 6}},
    {1, "lenet_callbacks", {9560759624935938472u, 11396708987686978663u, 7}},
    {1, "mlp_sharded", {12782518663002793225u, 17241709254077376921u, 8}},
    {2, "mlp_adam", {2336410209729744212u, 17241709254077376921u, 8}},
    {2, "mlp_within_epoch", {5475014618904895707u, 17241709254077376921u, 6}},
    {2, "lenet_callbacks", {9560759624935938472u, 11396708987686978663u, 7}},
    {2, "mlp_sharded", {12782518663002793225u, 17241709254077376921u, 8}},
    {2, "lenet_callbacks_with_names", {9560759624935938472u, 11396708987686978663u, 7}},
};

}  // namespace

TEST_CASE("files of the format of today: the corpus is made where it is asked for", "[train]") {
  const char* folder = std::getenv("SKEIN_MAKE_CHECKPOINTS");
  const support::TemporaryFolder own;
  each_training([&](const std::string& name, const auto& save) {
    const std::string file = "format_" + std::to_string(sk::train::checkpoint_version) + "_" + name;
    const std::string path = folder ? std::string(folder) + "/" + file : own / file;
    const Facts facts = save(path);
    if (folder) std::printf("    {%u, \"%s\", {%s}},\n", sk::train::checkpoint_version, name.c_str(), text_of(facts).c_str());
    CHECK(std::filesystem::file_size(path) < 8192);
  });
}

TEST_CASE("files of every format load, with their bits, and the trainings go on", "[train]") {
  for (const File& file : corpus) {
    const std::string path = fixture("format_" + std::to_string(file.format) + "_" + file.name);
    CAPTURE(path);
    const auto check = [&](auto training) {
      training.trainer.load(path);
      CHECK(text_of(facts_of(training)) == text_of(file.facts));
      training.go_on();
    };
    const std::string name = file.name;
    if (name == "mlp_adam") check(MlpOfAdam());
    else if (name == "mlp_within_epoch") check(MlpWithinEpoch());
    else if (name.starts_with("lenet_callbacks")) check(LeNetWithCallbacks());
    else {
      MlpOfAdam sharded;
      sharded.trainer.load(path);
      CHECK(text_of(facts_of(sharded)) == text_of(file.facts));
      Mlp weights{sk::Seed{4}};
      weights.load(path);
      CHECK(std::equal(weights.parameters().begin(), weights.parameters().end(), sharded.model.parameters().begin()));
    }
  }
}
