// SPDX-License-Identifier: Apache-2.0
// Samples that were prepared otherwise than the training's: refused or named where they meet the training, and not found where
// the preparation is the same.
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/trainer.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/csv.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/map.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/data/table_split.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>

#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using House = sk::Model<nn::Sequential<nn::Linear<1>>, sk::Shape<3>>;
template <class F> std::string thrown(F&& f) { return support::thrown<sk::Error>(f); }

sk::data::Table houses(int first, int rows) {
  std::string text = "area,town,price\n";
  for (int i = first; i < first + rows; ++i)
    text += std::to_string(40 + 7 * i % 90) + (i % 2 ? ",Ulm," : ",Bonn,") + std::to_string(i % 13) + "\n";
  return sk::data::parse_csv(text, "houses");
}
sk::data::TableEncoder encoder_of(const sk::data::Table& rows) {
  sk::data::TableEncoder encoder;
  encoder.standardize({"area"}).one_hot({"town"}).target({"price"});
  encoder.fit(rows);
  return encoder;
}
sk::FitOptions once(sk::data::DatasetView validation = {}) {
  return {.epochs = 1, .batch = 8, .validate = validation, .progress = false};
}
auto trainer_of(House& model) { return sk::Trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}}; }

/// What f writes to stderr.
std::string said(const support::TemporaryFolder& folder, const std::function<void()>& f) {
  std::fflush(stderr);
  const int kept = dup(2), file = open((folder / "said").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(file, 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(file), close(kept);
  return support::read_text(folder / "said");
}
}  // namespace

TEST_CASE("a validation set that another TableEncoder has encoded is refused, through every view", "[train]") {
  const auto training = houses(0, 40), others = houses(40, 24);
  const auto encoder = encoder_of(training), another = encoder_of(others);
  const auto train = encoder.encode(training), wrong = another.encode(others), right = encoder.encode(others);
  House model;
  auto trainer = trainer_of(model);
  const auto refused = Catch::StartsWith(
      "fit: the training set and .validate were encoded by TableEncoders that have learnt other values: fit one encoder to the "
      "training rows, and encode both by it, .validate = encoder.encode(test)");
  const auto plain = [](std::span<float>) {};
  CHECK_THROWS_WITH(trainer.fit(train, once(wrong)), refused);
  CHECK_THROWS_WITH(trainer.fit(train, once(wrong.take(9))), refused);
  CHECK_THROWS_WITH(trainer.fit(train, once(wrong.subset({0, 1, 2}))), refused);
  CHECK_THROWS_WITH(trainer.fit(train, once(sk::data::map(wrong, plain))), refused);
  CHECK_THROWS_WITH(trainer.fit(train, once(sk::data::map(sk::data::DatasetView(wrong), plain))), refused);
  CHECK_THROWS_WITH(trainer.fit(sk::data::split(train, 0.5).first, once(sk::data::split(wrong, 0.5).second)), refused);
  CHECK_THROWS_WITH(trainer.fit(sk::data::join(train), once(sk::data::join(wrong))), refused);
  CHECK_NOTHROW(trainer.fit(train, once(right)));
  CHECK_NOTHROW(trainer.fit(train, once(encoder_of(training).encode(others))));  // another object that has learnt the same
  CHECK_NOTHROW(trainer.fit(sk::data::split(train, 0.5).first, once(sk::data::map(right, plain))));
  const auto raw = sk::data::from_tensors(std::vector<float>(24), sk::Extents{1, {3}}, std::vector<float>(8));
  CHECK_NOTHROW(trainer.fit(train, once(raw)));  // of which nothing is known
}

TEST_CASE("the TableEncoder that is kept is that of the training set, and of what is evaluated and predicted", "[train]") {
  const support::TemporaryFolder folder;
  const auto training = houses(0, 40), others = houses(40, 24);
  const auto encoder = encoder_of(training), another = encoder_of(others);
  const auto train = encoder.encode(training), wrong = another.encode(others);
  const std::string refused =
      "the TableEncoder that is kept with the model is not the one that encoded the training set, so that whoever uses the model "
      "would encode tables otherwise: trainer.keep(encoder) with that one, after encoder.fit(training)";
  House model;
  {
    auto trainer = trainer_of(model);
    trainer.keep(another);
    CHECK(thrown([&] { trainer.fit(train, once()); }) == "fit: " + refused);
    trainer.keep(encoder);
    trainer.fit(train, once());
    CHECK(thrown([&] { trainer.keep(another); }) == "keep: " + refused);
    sk::data::TableEncoder unfitted;
    unfitted.standardize({"area"}).one_hot({"town"}).target({"price"});
    CHECK(thrown([&] { trainer.keep(unfitted); }) == "keep: " + refused);
  }
  auto trainer = trainer_of(model);
  trainer.keep(encoder);
  trainer.fit(train, once());
  const std::string samples =
      ": the samples were encoded by another TableEncoder than the one that is kept with the model: encode them by that one, "
      "kept<sk::data::TableEncoder>().encode(table), or give the table";
  CHECK(thrown([&] { (void)trainer.evaluate(wrong); }) == "evaluate" + samples);
  CHECK(thrown([&] { (void)trainer.predict(wrong); }) == "predict" + samples);
  trainer.save(folder / "houses");
  House used;
  sk::Predictor predictor{used};
  predictor.load(folder / "houses");
  CHECK(thrown([&] { (void)predictor.predict(wrong); }) == "predict" + samples);
  CHECK_NOTHROW(predictor.predict(encoder.encode(others)));
  CHECK_NOTHROW(predictor.predict(predictor.kept<sk::data::TableEncoder>().encode(others)));
  auto again = trainer_of(used);
  again.load(folder / "houses");  // what is kept comes with the file
  CHECK(thrown([&] { again.fit(wrong, {.epochs = 2, .batch = 8, .progress = false}); }) == "fit: " + refused);
}

TEST_CASE("ranks whose parts were encoded by encoders of their own are told so", "[train]") {
  const auto of_ranks = [](bool own) {
    return thrown([&] {
      sk::spawn(2,
                [&](sk::ThreadComm& world) {
                  const auto rows = houses(40 * world.rank(), 40);
                  House model{sk::Seed{1}};
                  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, sk::parallel::DataParallel{world}};
                  sk::FitOptions options = once();
                  options.loader.partition = sk::data::Partition::local;
                  trainer.fit(encoder_of(own ? rows : houses(0, 80)).encode(rows), options);
                },
                {.deadline = 60});
    });
  };
  CHECK_THAT(of_ranks(true), Catch::Contains("the TableEncoder hash of training samples is "));
  CHECK(of_ranks(false).empty());
}

TEST_CASE("save says once that the encoder or the normalization of the training set is not kept", "[train]") {
  const support::TemporaryFolder folder;
  const auto training = houses(0, 40);
  const auto encoder = encoder_of(training);
  House model;
  auto trainer = trainer_of(model);
  const auto save = [&](auto& of) { return said(folder, [&] { of.save(folder / "file"); }); };
  CHECK(save(trainer).empty());  // before any fit
  trainer.fit(encoder.encode(training), once());
  CHECK(save(trainer) ==
        "save: the TableEncoder that encoded the training set is not kept, so that a Predictor of the file takes no tables: "
        "trainer.keep(encoder) before save\n");
  CHECK(save(trainer).empty());
  auto keeps = trainer_of(model);
  keeps.keep("rows of houses", encoder);  // under a name of one's own
  keeps.fit(encoder.encode(training), once());
  CHECK(save(keeps).empty());

  auto raw = trainer_of(model);
  const auto numbers = sk::data::from_tensors(std::vector<float>(24, 2), sk::Extents{1, {3}}, std::vector<float>(8));
  raw.fit(numbers, once());
  CHECK(save(raw).empty());
  auto normalized = trainer_of(model);
  normalized.fit(numbers.normalize(1, 2), once());
  CHECK(save(normalized) ==
        "save: the normalization of the training set is not kept, so that whoever uses the file has to normalise as the training "
        "did: trainer.keep(train.normalization()) before save\n");
  const auto digits = sk::data::synthetic_digits(32);
  sk::Model<nn::Sequential<nn::Flatten, nn::Linear<10>>, sk::Shape<28, 28, 1>> images;
  sk::Trainer reads{images, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}};
  reads.fit(digits, once());
  CHECK(save(reads).empty());  // whoever uses the model reads by the same function
  reads.fit(digits.normalize(0.2, 0.5), once());
  CHECK_THAT(save(reads), Catch::StartsWith("save: the normalization of the training set is not kept"));
  auto kept = trainer_of(model);
  kept.fit(numbers.normalize(1, 2), once());
  kept.keep(numbers.normalize(1, 2).normalization());
  CHECK(said(folder, [&] { kept.save_weights(folder / "weights"); }).empty());
}

TEST_CASE("fine-tuning keeps what the file of all weights keeps, and no more than that", "[train]") {
  const support::TemporaryFolder folder;
  const auto training = houses(0, 40);
  const auto encoder = encoder_of(training);
  House model;
  auto trainer = trainer_of(model);
  trainer.keep(encoder);
  trainer.keep("unit", std::string("euro"));
  trainer.fit(encoder.encode(training), once());
  trainer.save(folder / "base");

  auto tuned = trainer_of(model);
  tuned.keep("unit", std::string("dollar"));
  tuned.load_weights(folder / "base");
  tuned.fit(encoder.encode(training), once());
  tuned.save(folder / "tuned");
  CHECK(tuned.kept<std::string>("unit") == "dollar");
  sk::Predictor predictor{model};
  predictor.load(folder / "tuned");
  CHECK_NOTHROW(predictor.predict(training));  // was: no object "table encoder" is kept
  auto head = trainer_of(model);
  head.load_weights(folder / "base", {.only = "0.*"});
  CHECK_THROWS_WITH(head.kept<std::string>("unit"), Catch::Contains("no object \"unit\""));
}
