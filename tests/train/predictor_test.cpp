// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/train/predictor.hpp>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <skein/data/csv.hpp>
#include <skein/data/table_split.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/metrics.hpp>

#include "../support/own_layers.hpp"
#include "../support/shard_cases.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Flatten, nn::Linear<20>, nn::BatchNorm<>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<6, 6, 1>>;
struct Asks {
  std::function<void()> ask;
  void on_epoch_end(sk::train::EpochRecord&, sk::train::FitControl&) { ask(); }
};
template <class T> std::vector<float> values(const T& t) { return {t.begin(), t.end()}; }
}  // namespace

TEST_CASE("A predictor predicts what the trainer does, of its file, without gradients", "[train]") {
  const support::TemporaryFolder folder;
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  Model trained{sk::Seed{3}};
  sk::Trainer trainer{trained, nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(data, {.epochs = 2, .batch = 19, .progress = false});
  trainer.save(folder / "training");
  const auto expected = trainer.predict(data);

  Model model{sk::Seed{9}};
  sk::Predictor predictor{model, {.capacity = 16, .threads = 2}};
  CHECK(values(predictor.predict(data)) != values(expected));
  predictor.load(folder / "training");
  CHECK(values(predictor.predict(data)) == values(expected));
  const sk::Tensor<float, 4> x(std::span<const float>(images.x), sk::dims(61, 6, 6, 1));
  CHECK(values(predictor.predict(x)) == values(expected));
  sk::Tensor<float, 4> turned(sk::dims(6, 1, 61, 6));  // of which x is a view whose values of a row have gaps
  turned.view().permute(2, 0, 3, 1).assign(x);
  const auto view = std::as_const(turned).view().permute(2, 0, 3, 1);
  CHECK(values(predictor.predict(view)) == values(expected));
  CHECK(values(trainer.predict(view)) == values(expected));
  CHECK(std::as_const(model).gradients().size == 0);
  CHECK(predictor.memory_plan().gradients == 0);

  const sk::Tensor<float, 2> narrow(sk::dims(2, 35));
  CHECK_THROWS_WITH(predictor.predict(narrow), Catch::Contains("the rows of x are Shape<35>, the model takes Shape<6, 6, 1>"));
  const sk::Tensor<float, 2> flat(sk::dims(2, 36));
  CHECK_THROWS_WITH(predictor.predict(flat), Catch::Contains("say so: a tensor of samples x 6 x 6 x 1"));
  const sk::Tensor<float, 3> alone(std::span<const float>(images.x.data(), 36), sk::dims(6, 6, 1));
  CHECK_THROWS_WITH(predictor.predict(alone), Catch::Contains("x is one sample, and predict takes a row of samples, "
                                                              "x.view().reshape(1, 6, 6, 1): its rows are Shape<6, 1>"));
  CHECK(predictor.predict(alone.view().reshape(1, 6, 6, 1))(0, 2) == Approx(expected(0, 2)).margin(1e-5));
  sk::Model<nn::Sequential<nn::Flatten, nn::Linear<20>>, sk::Shape<6, 6, 1>> smaller;
  const auto before = values(smaller.parameters());
  sk::Predictor other{smaller};
  CHECK_THROWS_WITH(other.load(folder / "training"),
                    Catch::Contains("has the weights of another network: '2.weight' is in the file alone"));
  CHECK(values(smaller.parameters()) == before);
}

TEST_CASE("A trainer that has predicted one sample predicts many in parts of 256, unless a fit has made the memory", "[train]") {
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  const auto at_once = [&](long n) {
    (void)trainer.predict(sk::Tensor<float, 4>(sk::dims(n, 6, 6, 1)));
    return trainer.train_step().executor().capacity();
  };
  CHECK(at_once(1) == 1);
  CHECK(at_once(0) == 1);
  CHECK(at_once(300) == 256);
  CHECK(at_once(2) == 256);
  sk::Trainer fitted{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  fitted.fit(data, {.epochs = 1, .batch = 8, .progress = false});
  (void)fitted.predict(data);
  CHECK(fitted.train_step().executor().capacity() == 8);
}

TEST_CASE("A predictor normalises raw images as the file says, and refuses normalised ones", "[train]") {
  const support::TemporaryFolder folder;
  std::vector<std::uint8_t> bytes(20 * 36);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 % 251);
  for (int i = 0; i < 20; ++i) labels.push_back(i % 3);
  const auto raw = sk::data::from_tensors(bytes, sk::Extents{3, {6, 6, 1}}, labels);
  // [quote keep_normalization]
  const auto train = raw.normalize(0.4, 0.3);  // raw: bytes; served as (byte / 255 - 0.4) / 0.3
  Model trained{sk::Seed{3}};
  sk::Trainer trainer{trained, nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(train, {.epochs = 1, .batch = 10, .progress = false});
  trainer.keep(train.normalization());
  trainer.save(folder / "new");
  // [end]
  for (const std::string& name : {std::string(), std::string("a\tb"), std::string("gr\xF6\xDF"), std::string(501, 'n')})
    CHECK_THROWS_WITH(trainer.keep(name, 1), Catch::StartsWith("keep: ") && Catch::Contains("is no name of an object in a file"));
  trainer.keep(std::string(500, 'n'), 1);
  CHECK_NOTHROW(trainer.save(folder / "long"));
  sk::Trainer silent{trained, nn::CrossEntropy{}, sk::optim::Adam{}};
  silent.save(folder / "old");
  const auto expected = values(trainer.predict(train));
  const auto check = [&](const auto& outputs) {
    const auto found = values(outputs);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-4));
  };
  std::vector<float> shares(bytes.begin(), bytes.end());
  for (float& v : shares) v /= 255;

  Model model;
  sk::Predictor predictor{model, {.capacity = 7}};
  predictor.load(folder / "old");  // says nothing of its samples: they come as the network takes them
  check(predictor.predict(train));
  // [quote raw_images]
  predictor.load(folder / "new");
  const sk::Tensor<float, 2> logits = predictor.predict(raw);  // (20, 3)
  // [end]
  check(logits);
  check(predictor.predict(raw.subset({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})));
  check(predictor.predict(sk::data::from_tensors(shares, sk::Extents{3, {6, 6, 1}}, labels)));
  const sk::Tensor<float, 4> x(std::span<const float>(shares), sk::dims(20, 6, 6, 1));
  check(predictor.predict(x));
  check(predictor.predict(x * 1.0f));  // an expression is evaluated
  check(predictor.predict(x.view()));
  sk::Tensor<float, 4> turned(sk::dims(6, 1, 20, 6));
  turned.view().permute(2, 0, 3, 1).assign(x);
  check(predictor.predict(std::as_const(turned).view().permute(2, 0, 3, 1)));
  CHECK(values(trainer.predict(x * 2.0f)) == values(trainer.predict(sk::eval(x * 2.0f))));
  CHECK(predictor.kept<sk::data::Normalization>().divisor == 255);

  CHECK_THROWS_WITH(predictor.predict(train), Catch::Contains("this data set is normalised already: give the raw set"));
  CHECK_THROWS_WITH(predictor.predict(sk::eval(x * 255.0f)), Catch::Contains("trained with bytes / 255, from 0 to 1: divide"));
  silent.keep(raw.normalization());  // of bytes that were not normalised
  silent.save(folder / "bytes");
  predictor.load(folder / "bytes");
  CHECK(values(predictor.predict(raw)) == values(silent.predict(raw)));
  CHECK(values(predictor.predict(x)) == values(silent.predict(x)));
  CHECK_THROWS_WITH(predictor.predict(sk::eval(x * 255.0f)), Catch::Contains("trained with bytes / 255, from 0 to 1: divide"));
  CHECK_THROWS_WITH(predictor.predict(train), Catch::Contains("this data set is normalised already: give the raw set"));
  silent.keep(sk::data::Normalization{{1, 2}, {1, 1}});
  silent.save(folder / "channels");
  predictor.load(folder / "channels");
  CHECK_THROWS_WITH(predictor.predict(x), Catch::Contains("a normalization of 2 channels, the samples have 1"));
  silent.keep(sk::data::Normalization{{127}, {70}});
  silent.save(folder / "floats");
  predictor.load(folder / "floats");
  CHECK_THROWS_WITH(predictor.predict(raw), Catch::Contains("the file keeps a normalization of values beyond 1"));
}

TEST_CASE("A predictor gets raw rows of a table, and gives values in the table's units", "[train]") {
  const support::TemporaryFolder folder;
  using House = sk::Model<nn::Sequential<nn::Linear<1>>, sk::Shape<4>>;
  std::string text = "area,town,age,price\n";
  for (int i = 0; i < 60; ++i) {
    const int area = 40 + 7 * i % 90;
    text += std::to_string(area) + (i % 2 ? ",Ulm," : ",Bonn,") + (i % 5 ? std::to_string(i % 30) : "") + "," +
            std::to_string(3000 * area + (i % 2 ? 50000 : 0)) + "\n";
  }
  std::ofstream(folder / "houses.csv") << text;
  std::ofstream(folder / "new.csv") << "age,town,area\n,Ulm,100\n3,Bonn,50\n";
  {
    // [quote table]
    const auto table = sk::data::read_csv(folder / "houses.csv");  // area, town, age (some are missing), price
    const auto [training, test] = sk::data::split(table, 0.8, sk::Seed{1});
    sk::data::TableEncoder encoder;
    encoder.standardize({"area", "age"}, {.missing = sk::data::Fill::median}).one_hot({"town"}).standardize_target({"price"});
    const auto train = encoder.fit(training).encode(training), check = encoder.encode(test);  // (4) to (1)
    // [end]
    // [quote keep]
    House model{sk::Seed{1}};
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{.lr = 0.05f}};
    trainer.keep(encoder);  // goes into the file
    const sk::History history =
        trainer.fit(train, {.epochs = 60, .batch = 20, .validate = check, .metrics = {sk::train::R2{}}, .progress = false});
    trainer.save(folder / "houses.skein");
    // [end]
    CHECK(history.back().validation["R2"] > 0.99);
    const auto rows = sk::data::read_csv(folder / "new.csv");
    const auto prices = trainer.predict(rows);  // raw rows, as a predictor takes them
    CHECK(prices(0, 0) == Approx(350000).epsilon(0.02));
    sk::Predictor same{model};
    trainer.save_weights(folder / "weights");
    same.load(folder / "weights");
    CHECK(values(same.predict(rows)) == values(prices));
    sk::Trainer without{model, nn::Mse{}, sk::optim::Adam{}};
    CHECK_THROWS_WITH(without.predict(rows), Catch::Contains("no object \"table encoder\""));
    trainer.keep("unit", std::string("euro"));
    trainer.save(folder / "houses.skein");
    sk::Trainer again{model, nn::Mse{}, sk::optim::Adam{.lr = 0.05f}};
    again.load(folder / "houses.skein");
    again.save(folder / "houses.skein");  // what is kept goes on with the training
  }
  House fresh;
  CHECK_THROWS_WITH(sk::Predictor{fresh}.predict(sk::data::parse_csv("area\n1\n", "t")),
                    Catch::Contains("no object \"table encoder\" is kept beside this model; kept are: none. trainer.keep(...)") &&
                        Catch::Contains("a predictor has those of the file that it was given by load()"));
  // [quote raw_rows]
  House model;
  sk::Predictor predictor{model};
  predictor.load(folder / "houses.skein");
  const sk::Tensor<float, 2> prices = predictor.predict(sk::data::read_csv(folder / "new.csv"));  // (2, 1), in euros
  // [end]
  CHECK(prices(0, 0) == Approx(350000).epsilon(0.02));
  CHECK(prices(1, 0) == Approx(150000).epsilon(0.04));
  CHECK(predictor.kept<std::string>("unit") == "euro");
  const sk::Tensor<float, 2> raw({{100, 1, 0, 1}});
  const auto refused = Catch::Contains(
      "predict: the model was trained on rows that a TableEncoder encoded, and a tensor does not "
      "say whether its rows are: give the table, predict(sk::data::read_csv(\"new.csv\"))");
  CHECK_THROWS_WITH(predictor.predict(raw), refused);
  sk::Trainer loaded{model, nn::Mse{}, sk::optim::Adam{.lr = 0.05f}};
  loaded.load(folder / "houses.skein");
  CHECK_THROWS_WITH(loaded.predict(raw), refused);
  const auto encoded = predictor.kept<sk::data::TableEncoder>().encode(sk::data::read_csv(folder / "new.csv"));
  CHECK(values(predictor.predict(encoded)).size() == 2);
  CHECK(predictor.kept<sk::data::TableEncoder>().names()[2] == "town = Bonn");
  CHECK_THROWS_WITH(predictor.predict(sk::data::parse_csv("age,town,area\n,Kiel,100\n", "new.csv")),
                    Catch::Contains("column \"town\" has \"Kiel\" in data row 1"));
}

TEST_CASE("The rows of a table become tokens for a model that takes such", "[train]") {
  using Town = sk::Model<nn::Sequential<own_layers::Embedding<4, 3>, nn::Flatten, nn::Linear<1>>, sk::Tokens<1>>;
  const support::TemporaryFolder folder;
  const auto table = sk::data::parse_csv("town,n\nBonn,1\nKoeln,2\nTrier,4\nBonn,1\n", "towns");
  sk::data::TableEncoder encoder;
  encoder.index({"town"}).target({"n"}).fit(table);
  Town model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Adam{.lr = 0.05f}};
  trainer.keep(encoder);
  trainer.fit(encoder.tokens(table), {.epochs = 200, .batch = 4, .progress = false});
  const auto predicted = values(trainer.predict(table));
  for (const std::size_t i : {0, 1, 2}) CHECK(predicted[i] == Approx(i == 0 ? 1 : 2 * i).epsilon(0.1));
  trainer.save(folder / "towns.skein");
  Town other{sk::Seed{2}};
  sk::Predictor predictor{other};
  predictor.load(folder / "towns.skein");
  CHECK(values(predictor.predict(table)) == predicted);
}

TEST_CASE("Several threads predict with one predictor, or with one each, what one thread does", "[train]") {
  using Small = sk::Model<nn::Sequential<nn::Linear<32>, nn::Linear<3>>, sk::Shape<6>>;
  Small model{sk::Seed{3}};
  sk::Predictor shared{model, {.capacity = 16, .threads = 2}};
  const auto rows = [](int thread) {
    sk::Tensor<float, 2> x(sk::dims(100, 6));
    for (long i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>((i * 7 + thread * 13) % 11) / 11;
    return x;
  };
  const sk::Tensor<float, 2> x = rows(1);  // every second row of it, from behind
  const auto some = x(sk::range(1, 100, 2)).reverse(0);
  CHECK(values(shared.predict(some)) == values(shared.predict(sk::eval(some))));
  std::vector<std::vector<float>> alone;
  for (int k = 0; k < 4; ++k) alone.push_back(values(shared.predict(rows(k))));
  for (const bool own : {false, true}) {
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k)
      threads.emplace_back([&, k] {
        sk::Predictor mine{model, {.capacity = 16, .threads = 1}};
        const auto x = rows(k);
        for (int i = 0; i < 50; ++i)
          if (values((own ? mine : shared).predict(x)) != alone[static_cast<std::size_t>(k)])
            ++wrong[static_cast<std::size_t>(k)];
      });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == std::vector<int>(4));
  }
}

TEST_CASE("A thread may load a file into a predictor while others predict and ask what is kept", "[train]") {
  using Small = sk::Model<nn::Sequential<nn::Linear<3>>, sk::Shape<6>>;
  const support::TemporaryFolder folder;
  Small model{sk::Seed{3}};
  {
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}};
    trainer.keep("names", std::vector<std::string>{"one", "two", "three"});
    trainer.save_weights(folder / "weights");
  }
  sk::Predictor shared{model, {.capacity = 4, .threads = 1}};
  shared.load(folder / "weights");
  const sk::Tensor<float, 2> x(sk::dims(4, 6));
  const std::vector<float> expected = values(shared.predict(x));
  std::atomic<int> wrong = 0;
  std::thread others([&] {
    for (int i = 0; i < 200; ++i) wrong += values(shared.predict(x)) != expected;
  });
  std::thread asks([&] {
    for (int i = 0; i < 200; ++i) wrong += shared.kept<std::vector<std::string>>("names").size() != 3;
  });
  for (int i = 0; i < 50; ++i) shared.load(folder / "weights");
  others.join(), asks.join();
  CHECK(wrong == 0);
}

TEST_CASE("A model that a thread trains predicts in that thread alone", "[train]") {
  using Small = sk::Model<nn::Sequential<nn::Linear<4>, nn::Linear<1>>, sk::Shape<3>>;
  Small model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}};
  sk::Predictor predictor{model, {.capacity = 4, .threads = 1}};
  const sk::Tensor<float, 2> x = sk::ones<float>(4, 3), y = sk::ones<float>(4, 1);
  const auto in_another_thread = [](auto act) {
    std::string said;
    std::thread([&] { said = support::thrown<sk::ArgumentError>(act); }).join();
    return said;
  };
  std::string of_predictor, of_trainer;
  long predicted = 0;
  sk::FitOptions options{.epochs = 1, .batch = 4, .progress = false, .threads = 1};
  options.callbacks = {Asks{[&] {
    of_predictor = in_another_thread([&] { (void)predictor.predict(x); });
    of_trainer = in_another_thread([&] { (void)trainer.predict(x); });
    predicted = predictor.predict(x).size();
  }}};
  trainer.fit(sk::data::from_tensors(x, y), options);
  CHECK_THAT(of_predictor, Catch::Contains("another thread trains this model just now"));
  CHECK_THAT(of_trainer, Catch::Contains("give the other thread a Predictor of its own"));
  CHECK(predicted == 4);
  CHECK(in_another_thread([&] { (void)predictor.predict(x); }).empty());
}
