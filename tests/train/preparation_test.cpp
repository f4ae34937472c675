// SPDX-License-Identifier: Apache-2.0
// Samples that were prepared otherwise than the training's, and a loaded training that goes on otherwise: refused or named where
// they meet the training, and not found where all is the same.
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/trainer.hpp>

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <skein/comm/thread/spawn.hpp>
#include <skein/data/csv.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/map.hpp>
#include <skein/data/synthetic_digits.hpp>
#include <skein/data/table_split.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/muon.hpp>
#include <skein/parallel/data/data_parallel.hpp>

#include "../support/said.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using House = sk::Model<nn::Sequential<nn::Linear<1>>, sk::Shape<3>>;
using support::said;
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
  auto commits = trainer_of(model);
  sk::FitOptions with_commits = once();
  with_commits.checkpoint = {.folder = folder / "run"};
  CHECK(said(folder, [&] { commits.fit(numbers.normalize(1, 2), with_commits); }) ==
        "fit: the normalization of the training set is not kept, so that whoever uses the file has to normalise as the training "
        "did: trainer.keep(train.normalization()) before fit\n");
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

namespace {
auto numbers() {
  std::vector<float> x, y;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(i % 7 + 3));
  for (int i = 0; i < 8; ++i) y.push_back(static_cast<float>(i % 3));
  return sk::data::from_tensors(x, sk::Extents{1, {3}}, y);
}
/// Says nothing of itself: its values may be normalised.
struct OwnSet {
  std::int64_t size() const { return 8; }
  sk::Extents sample_extents() const { return {1, {3}}; }
  sk::data::Target target() const { return {.kind = sk::data::TargetKind::vector, .count = 1}; }
  void gather(sk::data::Indices i, float* x, long pitch) const {
    for (std::size_t k = 0; k < i.size(); ++k)
      for (long c = 0; c < 3; ++c) x[static_cast<long>(k) * pitch + c] = static_cast<float>(i[k] - c);
  }
  void targets(sk::data::Indices i, float* y, long pitch) const {
    for (std::size_t k = 0; k < i.size(); ++k) y[static_cast<long>(k) * pitch] = static_cast<float>(i[k]);
  }
};
}  // namespace

TEST_CASE("the normalization that is kept is that of the training set", "[train]") {
  const support::TemporaryFolder folder;
  const auto raw = numbers(), set = raw.normalize(5, 2), other = raw.normalize(1, 4);
  const std::string refused =
      ": the normalization that is kept with the model is (value - 5) / 2, and the training set is served as (value - 1) / 4, so "
      "that whoever uses the model would normalise otherwise: trainer.keep(train.normalization()), or normalise the training set "
      "by the kept one";
  const std::string note =
      ": a normalization is kept with the model, (value - 5) / 2, and the training samples have no normalization: give them that "
      "one, map(set, trainer.kept<sk::data::Normalization>()), unless they come normalised by code of your own\n";
  House model;
  auto trainer = trainer_of(model);
  trainer.keep(set.normalization());
  CHECK(thrown([&] { trainer.fit(other, once()); }) == "fit" + refused);
  CHECK(said(folder, [&] { trainer.fit(set, once()); }).empty());
  CHECK_THAT(thrown([&] { trainer.keep(other.normalization()); }), Catch::StartsWith("keep: the normalization that is kept"));
  trainer.keep(set.normalization());
  trainer.save(folder / "file");

  auto again = trainer_of(model);
  again.load(folder / "file");  // what is kept comes with the file
  CHECK(thrown([&] { again.fit(other, {.epochs = 2, .batch = 8, .progress = false}); }) == "fit" + refused);
  const sk::FitOptions more{.epochs = 2, .batch = 8, .progress = false};
  CHECK(said(folder, [&] { again.fit(raw, more); }) == "fit" + note);
  CHECK(said(folder, [&] { again.fit(raw, once()); }).empty());  // once
  auto same = trainer_of(model);
  same.load(folder / "file");
  CHECK(said(folder, [&] { same.fit(sk::data::map(raw, same.kept<sk::data::Normalization>()), more); }).empty());
  auto tuned = trainer_of(model);
  tuned.load_weights(folder / "file");
  CHECK(thrown([&] { tuned.fit(other, once()); }) == "fit" + refused);
  tuned.keep(other.normalization());
  CHECK_NOTHROW(tuned.fit(other, once()));

  auto own = trainer_of(model);
  own.keep(sk::data::Normalization{{5}, {2}});  // of a set that normalises in its own code
  CHECK(said(folder, [&] { own.fit(OwnSet{}, once()); }).empty());
  CHECK(said(folder, [&] { (void)own.evaluate(OwnSet{}); }).empty());
  auto late = trainer_of(model);
  late.fit(raw, once());
  CHECK_THAT(said(folder,
                  [&] {
                    late.keep(sk::data::Normalization{{5}, {2}});
                  }),
             Catch::StartsWith("keep: a normalization is kept with the model, (value - 5) / 2, and the training samples had no"));

  const auto bytes = sk::data::from_tensors(std::vector<std::uint8_t>(24, 7), sk::Extents{1, {3}}, std::vector<float>(8));
  auto of_bytes = trainer_of(model);
  of_bytes.keep(bytes.normalize(0.4, 0.3).normalization());
  CHECK_THAT(thrown([&] { of_bytes.fit(bytes, once()); }), Catch::Contains("is (value - 0.4) / 0.3, and the training set is "));
  const auto digits = sk::data::synthetic_digits(32);
  sk::Model<nn::Sequential<nn::Flatten, nn::Linear<10>>, sk::Shape<28, 28, 1>> images;
  sk::Trainer reads{images, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}};
  reads.keep(digits.normalization());
  CHECK(said(folder, [&] { reads.fit(digits, once()), (void)reads.evaluate(digits.take(9)); }).empty());
}

TEST_CASE("a commit of another normalization than the training set's is not gone on with", "[train]") {
  const support::TemporaryFolder folder;
  const auto set = numbers().normalize(5, 2), other = numbers().normalize(1, 4);
  const auto fit = [&](const auto& data, int epochs) {
    House model;
    auto trainer = trainer_of(model);
    trainer.keep(data.normalization());
    trainer.fit(data, {.epochs = epochs, .batch = 8, .progress = false, .checkpoint = {.folder = folder / "run"}});
  };
  fit(set, 1);
  CHECK(thrown([&] { fit(other, 2); }) ==
        "fit, which goes on from the .checkpoint folder: the normalization that is kept with the model is (value - 5) / 2, and "
        "the training set is served as (value - 1) / 4, so that whoever uses the model would normalise otherwise: "
        "trainer.keep(train.normalization()), or normalise the training set by the kept one");
  CHECK_NOTHROW(fit(set, 2));
}

TEST_CASE("what a trainer evaluates and predicts was prepared as its training set", "[train]") {
  const support::TemporaryFolder folder;
  const auto raw = numbers(), set = raw.normalize(5, 2);
  const std::string refused =
      ": the training set was served as (value - 5) / 2, these samples as (value - 0) / 1: give them the normalization of the "
      "training set, map(raw, train.normalization())";
  House model;
  auto trainer = trainer_of(model);
  CHECK_NOTHROW(trainer.evaluate(raw));  // before any fit
  trainer.fit(set, once());
  CHECK(thrown([&] { (void)trainer.evaluate(raw); }) == "evaluate" + refused);
  CHECK(thrown([&] { (void)trainer.predict(raw); }) == "predict" + refused);
  CHECK_NOTHROW(trainer.evaluate(set.take(5)));
  CHECK_NOTHROW(trainer.predict(sk::data::map(raw, set.normalization())));
  CHECK_NOTHROW(trainer.evaluate(OwnSet{}));  // of which nothing is known
  trainer.keep(set.normalization());
  trainer.save(folder / "file");
  auto plain = trainer_of(model);
  plain.fit(raw, once());
  CHECK_THAT(thrown([&] { (void)plain.evaluate(set); }),
             Catch::StartsWith("evaluate: the training set was served as (value - 0)"));
  plain.load(folder / "file");  // the weights are of another training now
  CHECK_NOTHROW(plain.evaluate(set));
  CHECK_THAT(
      thrown([&] { (void)plain.evaluate(raw.normalize(1, 4)); }),
      Catch::StartsWith("evaluate: the normalization that is kept with the model is (value - 5) / 2, and these samples are "
                        "served as (value - 1) / 4: normalise them by the kept one"));
  CHECK(said(folder, [&] { (void)plain.evaluate(raw); }) ==
        "evaluate: a normalization is kept with the model, (value - 5) / 2, and the samples have no normalization: give them "
        "that one, map(set, trainer.kept<sk::data::Normalization>()), unless they come normalised by code of your own\n");

  const auto training = houses(0, 40), others = houses(40, 24);
  const auto encoder = encoder_of(training);
  House of_houses;
  auto tables = trainer_of(of_houses);  // that keeps nothing
  tables.fit(encoder.encode(training), once());
  const std::string encoded =
      ": the samples were encoded by another TableEncoder than the training set: encode them by that one, encoder.encode(table)";
  CHECK(thrown([&] { (void)tables.evaluate(encoder_of(others).encode(others)); }) == "evaluate" + encoded);
  CHECK(thrown([&] { (void)tables.predict(encoder_of(others).encode(others)); }) == "predict" + encoded);
  CHECK_NOTHROW(tables.evaluate(encoder_of(training).encode(others)));
}

TEST_CASE("Model::load says that it leaves what the file keeps of the preparation", "[train]") {
  const support::TemporaryFolder folder;
  const auto training = houses(0, 40);
  const auto encoder = encoder_of(training);
  House model;
  const auto load = [&](const std::string& file, const sk::LoadOptions& options = {}) {
    return said(folder, [&] { model.load(folder / file, options); });
  };
  {
    auto trainer = trainer_of(model);
    trainer.fit(numbers().normalize(5, 2), once());
    trainer.keep("unit", std::string("euro"));
    (void)said(folder, [&] { trainer.save(folder / "bare"); });
    trainer.keep(numbers().normalize(5, 2).normalization());
    trainer.save(folder / "numbers");
  }
  {
    auto trainer = trainer_of(model);
    trainer.keep(encoder);
    trainer.save(folder / "tables");
  }
  CHECK(load("bare").empty());
  CHECK(load("numbers", {.only = "0.*"}).empty());
  CHECK(load("numbers") == "load: '" + (folder / "numbers") +
                               "' keeps a normalization, which a model has no place for, so that samples have to come "
                               "normalised: Predictor::load and Trainer::load_weights read it with the weights\n");
  CHECK(load("numbers").empty());  // once
  CHECK_THAT(load("tables"), Catch::Contains("keeps a TableEncoder, which a model has no place for, so that samples have to come "
                                             "encoded: "));
  CHECK(said(folder, [&] { sk::Predictor{model}.load(folder / "numbers"); }).empty());
}

TEST_CASE("a loaded training says what it goes on with otherwise", "[train]") {
  const support::TemporaryFolder folder;
  const auto set = numbers();
  const auto goes_on = [&](sk::optim::Adam adam, const auto& data, long batch, int epochs = 2) {
    House model;
    sk::Trainer trainer{model, nn::Mse{}, adam};
    trainer.load(folder / "file");
    return said(folder, [&] { trainer.fit(data, {.epochs = epochs, .batch = batch, .progress = false}); });
  };
  {
    House model;
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{.lr = 0.003f}};
    trainer.fit(set, {.epochs = 1, .batch = 4, .progress = false});
    trainer.save(folder / "file");
  }
  CHECK(goes_on({.lr = 0.003f}, set, 4).empty());
  CHECK(goes_on({.lr = 0.3f, .beta1 = 0.5f}, set, 4) ==
        "fit: `.lr` of Adam was 0.003 in the loaded training, and is 0.3 now\n"
        "fit: `.beta1` of Adam was 0.9 in the loaded training, and is 0.5 now\n");
  CHECK(goes_on({.lr = 0.003f}, set.take(6), 2) ==
        "fit: the batch over all ranks (.batch) was 4 in the loaded training, and is 2 now\n"
        "fit: the number of training samples was 8 in the loaded training, and is 6 now\n");
  sk::spawn(2,
            [&](sk::ThreadComm& world) {  // rank 0 says it
              House model{sk::Seed{1}};
              sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{.lr = 0.3f}, sk::parallel::DataParallel{world}};
              const auto fit = [&] {
                trainer.load(folder / "file");
                trainer.fit(set, {.epochs = 2, .batch = 4, .progress = false});
              };
              if (world.rank() == 1) return fit();
              CHECK(said(folder, fit) == "fit: `.lr` of Adam was 0.003 in the loaded training, and is 0.3 now\n");
            },
            {.deadline = 60});
}

TEST_CASE("a setting of the optimizer that is an enumeration is said by its words, but of older files, which have its number",
          "[train]") {
  const support::TemporaryFolder folder;
  const auto chain = [](sk::optim::MuonScale scale) {
    return sk::optim::chain(sk::optim::Muon{.scale = scale}, sk::optim::Sgd{});
  };
  House model, other;
  sk::Trainer trainer{model, nn::Mse{}, chain(sk::optim::MuonScale::rms)};
  trainer.fit(numbers(), {.epochs = 1, .batch = 4, .progress = false});
  trainer.save(folder / "file");
  sk::Trainer resumed{other, nn::Mse{}, chain(sk::optim::MuonScale::original)};
  resumed.load(folder / "file");
  CHECK(said(folder, [&] { resumed.fit(numbers(), {.epochs = 2, .batch = 4, .progress = false}); }) ==
        "fit: `.scale` of Muon was rms in the loaded training, and is original now\n");
  const std::string older = "`.scale` of Muon\t0\n`.max_norm` of ClipNorm\t5\n",
                    now = "`.scale` of Muon\toriginal\n`.max_norm` of ClipNorm\tinf\n";
  CHECK(said(folder, [&] { sk::train::say_others(older, now, {}, {}); }) ==
        "fit: `.max_norm` of ClipNorm was 5 in the loaded training, and is inf now\n");
}

TEST_CASE("a training that goes on without its callbacks says that their state is left out", "[train]") {
  const support::TemporaryFolder folder;
  struct Stops {
    void on_epoch_end(sk::train::EpochRecord&, sk::train::FitControl& control) const { control.stop("enough"); }
  };
  const auto begins = [&](const sk::train::Callbacks& callbacks) {
    House model;
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{}};
    trainer.fit(numbers(), {.epochs = 2, .batch = 4, .callbacks = callbacks, .progress = false});
    trainer.save(folder / "file");
  };
  const auto goes_on = [&](const sk::train::Callbacks& callbacks) {
    House model;
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{}};
    trainer.load(folder / "file");
    return said(folder, [&] { trainer.fit(numbers(), {.epochs = 3, .batch = 4, .callbacks = callbacks, .progress = false}); });
  };
  begins({Stops{}});
  CHECK(goes_on({}) == "fit: goes on without the callback of the loaded training, whose state is left out\n");
  CHECK(goes_on({Stops{}}).empty());
  begins({Stops{}, sk::train::EarlyStopping{}});
  CHECK(goes_on({}) == "fit: goes on without the 2 callbacks of the loaded training, whose state is left out\n");
  begins({});  // which ends: it begins anew
  CHECK(goes_on({}).empty());
}
