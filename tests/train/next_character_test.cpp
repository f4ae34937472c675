// SPDX-License-Identifier: Apache-2.0
// Embeddings trained end to end on a text: the character after each of eight (a label a position), and the one after all eight;
// from arrays of a program and from a file of NumPy that is mapped.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map_npy.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/optim/adam.hpp>
#include <skein/tensor/npy.hpp>
#include <skein/train/trainer.hpp>

#include "../support/own_layers.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr int length = 8, vocabulary = 65;
/// The next character from one: a row of logits for each of eight.
// [quote next_character]
struct Bigrams : nn::Sequential<own_layers::Embedding<vocabulary, 16>,         // (8) to (8, 16)
                                nn::EachPosition<nn::Linear<vocabulary>>> {};  // (8, 65): a label a position
// [end]
/// The next character from eight.
struct Context : nn::Sequential<own_layers::Embedding<vocabulary, 8>, nn::Flatten, nn::Linear<vocabulary>> {};

/// The next character from all before it: an LSTM whose state goes on from batch to batch.
// [quote stateful]
struct Reader : nn::Sequential<own_layers::Embedding<vocabulary, 16>, nn::Lstm<96, sk::Stateful>,
                               nn::EachPosition<nn::Linear<vocabulary>>> {};
// [end]

/// The beginning of tiny Shakespeare as tokens; empty, with a word to ctest, where the file is not there.
std::vector<std::int32_t> tokens(std::size_t most) {
  const char* folder = std::getenv("SKEIN_DATA");
  std::ifstream file(std::string(folder ? folder : "data") + "/text/tinyshakespeare.txt", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) WARN("SKIPPED: no text/tinyshakespeare.txt below SKEIN_DATA");
  const std::set<char> known(text.begin(), text.end());
  std::vector<std::int32_t> all;
  for (const char c : text.substr(0, most)) all.push_back(static_cast<std::int32_t>(std::distance(known.begin(), known.find(c))));
  return all;
}

template <class Net, class Data> std::vector<double> losses(const Data& data, int threads) {
  sk::Model<Net, sk::Tokens<length>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}};
  const sk::History history = trainer.fit(data, {.epochs = 4, .batch = 100, .progress = false, .threads = threads});
  auto all = history.losses();
  for (const auto& e : history.epochs()) all.push_back(e.training.accuracy);
  return all;
}
}  // namespace

TEST_CASE("An embedding learns the character after each, from arrays and from a mapped file", "[train]") {
  const std::vector<std::int32_t> text = tokens(40'000);
  if (text.empty()) return;
  const support::TemporaryFolder folder;
  sk::save_npy(folder / "text.npy", sk::Tensor<std::int32_t, 1>(text, sk::dims(static_cast<long>(text.size()))));
  // [quote next_tokens]
  const sk::data::NextTokens mapped(sk::data::map_npy<std::int32_t>(folder / "text.npy"),
                                    {.length = length, .vocabulary = vocabulary});
  // [end]
  const long samples = static_cast<long>(mapped.size());
  sk::Tensor<std::int32_t, 2> x(sk::dims(samples, length)), y(sk::dims(samples, length));
  for (long i = 0; i < samples * length; ++i) {
    x.data()[i] = text[static_cast<std::size_t>(i)];
    y.data()[i] = text[static_cast<std::size_t>(i + 1)];
  }
  const std::vector<double> first = losses<Bigrams>(mapped, 1);
  CHECK(first[3] < 2.7);  // 4.17 is a guess; 3.3 how often each character comes; 2.45 what pairs of all the text say
  CHECK(first[3] < 0.9 * first[0]);
  CHECK(first.back() > 0.25);  // of all positions
  CHECK(losses<Bigrams>(sk::data::from_tensors(x, y), 1) == first);
  for (const int threads : {2, 4}) {
    const std::vector<double> again = losses<Bigrams>(mapped, threads);
    CHECK(again == losses<Bigrams>(mapped, threads));  // equal tokens are summed in a fixed order
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(again[i] == Approx(first[i]).epsilon(1e-3));
  }
}

TEST_CASE("An embedding learns the character after eight, a label a sample", "[train]") {
  const std::vector<std::int32_t> text = tokens(20'000);
  if (text.empty()) return;
  const long samples = static_cast<long>(text.size()) - length;
  sk::Tensor<std::int32_t, 2> x(sk::dims(samples, length));
  for (long s = 0; s < samples; ++s)
    for (long t = 0; t < length; ++t) x(s, t) = text[static_cast<std::size_t>(s + t)];
  const std::vector<std::int32_t> next(text.begin() + length, text.end());
  const std::vector<double> first = losses<Context>(sk::data::from_tensors(x, next), 2);
  CHECK(first[3] < 2.4);
  CHECK(first[3] < 0.9 * first[0]);
}

TEST_CASE("An LSTM with a state that goes on learns the next character, by truncated back-propagation", "[train]") {
  constexpr long streams = 16;  // parts of the text that are read side by side
  const std::vector<std::int32_t> text = tokens(40'000);
  if (text.empty()) return;
  const long each = static_cast<long>(text.size() - 1) / streams / length * length;
  std::vector<std::int32_t> x(streams * length), y(streams * length);
  const auto window = [&](long first) {
    for (long s = 0; s < streams; ++s) {
      std::copy_n(text.data() + s * each + first, length, x.data() + s * length);
      std::copy_n(text.data() + s * each + first + 1, length, y.data() + s * length);
    }
    sk::BatchView<float> batch;
    batch.tokens = x.data(), batch.labels = y.data();
    batch.pitch = batch.labels_each = length;
    batch.count = streams;
    return batch;
  };
  const auto train = [&]<class Network>(Network, int threads) {
    double mean = 0;
    // [quote truncated]
    sk::Model<Network, sk::Tokens<length>> model{sk::Seed{1}};
    sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = streams, .threads = threads}};
    sk::optim::BoundOptimizer adam{sk::optim::Adam{.lr = 0.004f}, model};
    for (int epoch = 0; epoch < 3; ++epoch) {
      mean = 0;
      executor.reset_states();
      for (long first = 0; first < each; first += length) {
        mean += executor.forward_backward(window(first)).mean() * length / static_cast<double>(each);
        adam.step(model, {.clip_norm = 1});
      }
    }
    // [end]
    return mean;
  };
  struct Forgetful
      : nn::Sequential<own_layers::Embedding<vocabulary, 16>, nn::Lstm<96>, nn::EachPosition<nn::Linear<vocabulary>>> {};
  const double one = train(Reader{}, 1);
  CHECK(one < 2.05);  // pairs of characters: 2.45
  CHECK(train(Reader{}, 2) == Approx(one).epsilon(2e-2));
  CHECK(one < train(Forgetful{}, 1) - 0.03);  // which begins every eight characters with nothing
}

TEST_CASE("A fit refuses a token that the network does not know, before anything has been changed", "[train]") {
  const std::vector<std::array<std::int32_t, length>> x{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 65, 4, 5, 6, 7}};
  const std::vector<int> y{1, 2};
  CHECK_THROWS_WITH(losses<Context>(sk::data::from_tensors(x, y), 1),
                    Catch::Contains("has the token 65 at position 3; the network has 65 tokens"));
  const std::vector<std::array<float, length>> numbers(2);
  CHECK_THROWS_WITH(losses<Context>(sk::data::from_tensors(numbers, y), 1),
                    Catch::Contains("the model takes tokens, the training data set's samples are numbers"));
  const sk::data::NextTokens<> windows(std::span<const std::int32_t>{x[0]}, {.length = 4});
  sk::Model<nn::Linear<3>, sk::Shape<4>> model;
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  CHECK_THROWS_WITH(trainer.fit(windows, {.batch = 1, .progress = false}),
                    Catch::Contains("the model calculates with numbers, the training data set's samples are tokens"));
}

TEST_CASE("Predictions are of tokens where the network takes them", "[train]") {
  sk::Model<Context, sk::Tokens<length>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{}};
  sk::Tensor<std::int32_t, 2> x(sk::dims(5, length));
  for (long i = 0; i < x.size(); ++i) x.data()[i] = static_cast<std::int32_t>(i % vocabulary);
  const auto rows = trainer.predict(x), same = trainer.predict(sk::data::from_tensors(x, std::vector<int>(5)));
  REQUIRE(rows.size() == 5 * vocabulary);
  for (long i = 0; i < rows.size(); ++i) CHECK(rows.data()[i] == same.data()[i]);
}
