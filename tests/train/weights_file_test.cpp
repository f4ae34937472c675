// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/normalization.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/huber.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/weights_file.hpp>

#include "support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
template <int Outputs> struct Body : nn::Sequential<nn::Linear<6>, nn::BatchNorm<>, nn::Relu, nn::Linear<Outputs>> {};
using Five = sk::Model<Body<5>, sk::Shape<4>>;
using Two = sk::Model<Body<2>, sk::Shape<4>>;

template <class Model> std::vector<float> all(const Model& m) { return {m.parameters().begin(), m.parameters().end()}; }
template <class Model> std::vector<float> statistics(const Model& m) { return {m.buffers().begin(), m.buffers().end()}; }

/// The file of a trained model, whose buffers are no longer their first ones.
struct Saved {
  support::TemporaryFolder folder;
  std::string path = folder / "five.skein";
  Five model{sk::Seed{1}};
  Saved() {
    for (const sk::plan::Entry& e : Five::program.buffers())
      for (long i = 0; i < e.extents.count(); ++i) model.buffers().data[e.offset + i] = 0.5f + static_cast<float>(e.offset + i);
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{}};
    trainer.save(path);
  }
};
}  // namespace

TEST_CASE("a model takes the weights of a training's file, without optimizer and place", "[train]") {
  Saved saved;
  Five model{sk::Seed{2}};
  model.load(saved.path);
  CHECK(all(model) == all(saved.model));
  CHECK(statistics(model) == statistics(saved.model));

  Five tuned{sk::Seed{3}};
  sk::Trainer trainer{tuned, nn::Mse{}, sk::optim::Adam{.lr = 0.5f, .amsgrad = true}};  // load() would refuse: another optimizer
  trainer.load_weights(saved.path);
  CHECK(all(tuned) == all(saved.model));
  CHECK(trainer.train_step().steps() == 0);
}

TEST_CASE("another head takes the body alone", "[train]") {
  Saved saved;
  Two model{sk::Seed{2}}, untouched{sk::Seed{2}};
  CHECK_THROWS_WITH(model.load(saved.path),
                    Catch::Contains("has the weights of another network: '3.weight' is 6 x 5 in the file and 6 x 2 in the model; "
                                    "'3.bias' is 5 in the file and 2 in the model. Take all others with {.except = \"3.*\"}"));
  CHECK(all(model) == all(untouched));
  model.load(saved.path, {.only = "0.*"});
  model.load(saved.path, sk::LoadOptions{.only = "1.*"});
  const long head = Two::parameter("3.weight").offset;
  const auto mine = all(model), theirs = all(saved.model), before = all(untouched);
  CHECK(std::vector(mine.begin(), mine.begin() + head) == std::vector(theirs.begin(), theirs.begin() + head));
  CHECK(std::vector(mine.begin() + head, mine.end()) == std::vector(before.begin() + head, before.end()));
  CHECK(statistics(model) == statistics(saved.model));
  CHECK_THROWS_WITH(
      model.load(saved.path, {.only = "7.*"}),
      "load_weights: .only = \"7.*\" is no name of the model's parameters and buffers, which begin with '0.weight'");

  Two at_once{sk::Seed{2}};
  at_once.load(saved.path, {.except = "3.*"});
  CHECK(all(at_once) == mine);
  CHECK(statistics(at_once) == statistics(saved.model));
  Two part{sk::Seed{2}};
  part.load(saved.path, {.only = "*.weight", .except = "3.*"});  // and no bias
  CHECK(part.parameters()[Two::parameter("0.weight").offset] == mine[0]);
  CHECK(part.parameters()[Two::parameter("0.bias").offset] == untouched.parameters()[Two::parameter("0.bias").offset]);
  CHECK_THROWS_WITH(
      model.load(saved.path, {.except = "7.*"}),
      "load_weights: .except = \"7.*\" is no name of the model's parameters and buffers, which begin with '0.weight'");
  CHECK_THROWS_WITH(model.load(saved.path, {.except = "*"}), "load_weights: .except = \"*\" leaves nothing to take");
}

TEST_CASE("names that one side alone has are said", "[train]") {
  Saved saved;
  sk::Model<nn::Sequential<nn::Linear<6>>, sk::Shape<4>> shorter;
  CHECK_THROWS_WITH(shorter.load(saved.path),
                    Catch::Contains("'1.scale' is in the file alone") || Catch::Contains("'1.weight' is in the file alone"));
  CHECK_NOTHROW(shorter.load(saved.path, {.only = "0.*"}));
  sk::Predictor predictor{shorter};
  CHECK_NOTHROW(predictor.load(saved.path, {.only = "0.*"}));
  sk::Model<nn::Sequential<nn::Linear<6>, nn::BatchNorm<>, nn::Relu, nn::Linear<5>, nn::Linear<3>>, sk::Shape<4>> longer;
  CHECK_THROWS_WITH(longer.load(saved.path), Catch::Contains("'4.weight' is in the model alone"));
}

TEST_CASE("a network with another layer without parameters does not take the weights in silence", "[train]") {
  const support::TemporaryFolder folder;
  using Trained = sk::Model<nn::Sequential<nn::Linear<5>, nn::Relu, nn::Dropout<>, nn::Linear<2>>, sk::Shape<4>>;
  Trained model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{}};
  trainer.save(folder / "training");
  trainer.save_weights(folder / "weights");
  const auto refused = Catch::Contains(
      "was saved from a network whose layer without parameters number 1 is Relu, and this model's is Tanh: write the network as "
      "it "
      "was trained; {.only = \"*\"} takes the weights alone");
  sk::Model<nn::Sequential<nn::Linear<5>, nn::Tanh, nn::Dropout<>, nn::Linear<2>>, sk::Shape<4>> other{sk::Seed{2}};
  const auto before = all(other);
  for (const char* name : {"training", "weights"}) {
    CHECK_THROWS_WITH(other.load(folder / name), refused);
    sk::Predictor predictor{other};
    CHECK_THROWS_WITH(predictor.load(folder / name), refused);
  }
  sk::Trainer wrong{other, nn::Mse{}, sk::optim::Adam{}};
  CHECK_THROWS_WITH(wrong.load_weights(folder / "weights"), refused);
  CHECK(all(other) == before);
  other.load(folder / "weights", {.only = "*"});
  CHECK(all(other) == all(model));
  // without Dropout, and with a layer behind: what predictions have
  sk::Model<nn::Sequential<nn::Linear<5>, nn::Relu, nn::Identity, nn::Linear<2>, nn::Softmax>, sk::Shape<4>> used{sk::Seed{3}};
  used.load(folder / "training");
  CHECK(all(used) == all(model));
}

TEST_CASE("a training goes on with the loss that it began with", "[train]") {
  const support::TemporaryFolder folder;
  Five model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{}};
  trainer.save(folder / "training");
  sk::Trainer other{model, nn::Huber{}, sk::optim::Adam{}};
  CHECK_THROWS_WITH(other.load(folder / "training"),
                    Catch::Contains("the file was saved with another loss (Mse) than this training has (Huber): go on with that "
                                    "one; load_weights(path) takes the weights alone"));
  CHECK_NOTHROW(other.load_weights(folder / "training"));
  CHECK_NOTHROW(trainer.load(folder / "training"));
}

TEST_CASE("within a fit no weights are loaded into its model", "[train]") {
  Saved saved;
  Five model{sk::Seed{2}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}};
  std::vector<float> before;
  sk::FitOptions options{.epochs = 1, .batch = 4, .progress = false, .threads = 1};
  options.callbacks.add([&](sk::train::EpochRecord&) {
    before = all(model);
    CHECK_THROWS_WITH(trainer.load_weights(saved.path),
                      Catch::Contains("within a fit, as in a callback, none is begun or loaded"));
  });
  trainer.fit(sk::data::from_tensors(sk::ones<float>(8, 4), sk::ones<float>(8, 5)), options);
  CHECK(!before.empty());
  CHECK(all(model) == before);
  CHECK_NOTHROW(trainer.load_weights(saved.path));
}

TEST_CASE("a part of a file's weights leaves a predictor what was kept with the others", "[train]") {
  Saved saved;
  Five model{sk::Seed{2}};
  sk::Trainer trainer{saved.model, nn::Mse{}, sk::optim::Adam{}};
  trainer.save_weights(saved.folder / "head");
  trainer.keep(sk::data::Normalization{.mean = {0.5}, .deviation = {0.25}});
  trainer.keep("unit", std::string("metre"));
  trainer.save_weights(saved.folder / "all");
  sk::Predictor predictor{model};
  const auto predicted = [&] {
    const auto y = predictor.predict(sk::ones<float>(3, 4));
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  predictor.load(saved.folder / "all");
  const std::vector<float> normalised = predicted();
  predictor.load(saved.folder / "head", {.only = "3.*"});
  CHECK(predictor.kept<std::string>("unit") == "metre");
  CHECK(predicted() == normalised);
  predictor.load(saved.folder / "head");
  CHECK_THROWS_WITH(predictor.kept<std::string>("unit"), Catch::Contains("no object \"unit\""));
  CHECK(predicted() != normalised);
}

TEST_CASE("load of a file that has weights alone says so, whether the optimizer has state or none", "[train]") {
  const support::TemporaryFolder folder;
  Five other{sk::Seed{2}};
  sk::Trainer adam{other, nn::Mse{}, sk::optim::Adam{}};
  sk::Trainer sgd{other, nn::Mse{}, sk::optim::Sgd{}};
  adam.save_weights(folder / "weights");
  for (const auto& load :
       {std::function([&] { adam.load(folder / "weights"); }), std::function([&] { sgd.load(folder / "weights"); })})
    CHECK_THROWS_WITH(load(),
                      Catch::Contains("has weights alone, and no training that could go on: load_weights(path) takes them"));
}
