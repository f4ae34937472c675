// SPDX-License-Identifier: Apache-2.0
// An embedding trained end to end: the next character of a text after the eight before it, from arrays of a program and from a
// file of NumPy.
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
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/adam.hpp>
#include <skein/tensor/npy.hpp>
#include <skein/train/trainer.hpp>

#include "../support/own_layers.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr int length = 8, vocabulary = 65;
struct Net : nn::Sequential<own_layers::Embedding<vocabulary, 8>, nn::Flatten, nn::Linear<vocabulary>> {};

/// The beginning of tiny Shakespeare as tokens; empty where the file is not there.
std::vector<std::int32_t> tokens(std::size_t most) {
  const char* folder = std::getenv("SKEIN_DATA");
  std::ifstream file(std::string(folder ? folder : "data") + "/text/tinyshakespeare.txt", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::set<char> known(text.begin(), text.end());
  std::vector<std::int32_t> all;
  for (const char c : text.substr(0, most)) all.push_back(static_cast<std::int32_t>(std::distance(known.begin(), known.find(c))));
  return all;
}

template <class Data> std::vector<double> losses(const Data& data, int threads) {
  sk::Model<Net, sk::Tokens<length>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(data, {.epochs = 3, .batch = 100, .progress = false, .threads = threads});
  return history.losses();
}
}  // namespace

TEST_CASE("An embedding learns the next character, from arrays and from a file of NumPy", "[train]") {
  const std::vector<std::int32_t> text = tokens(20'000);
  if (text.empty()) {
    WARN("no text/tinyshakespeare.txt below SKEIN_DATA: skipped");
    return;
  }
  const long samples = static_cast<long>(text.size()) - length;
  sk::Tensor<std::int32_t, 2> x(sk::dims(samples, length));
  for (long s = 0; s < samples; ++s)
    for (long t = 0; t < length; ++t) x(s, t) = text[static_cast<std::size_t>(s + t)];
  const std::vector<std::int32_t> next(text.begin() + length, text.end());

  const std::vector<double> first = losses(sk::data::from_tensors(x, next), 1);
  CHECK(first.back() < 2.4);  // 4.17 is a guess; 3.3 how often each character comes
  CHECK(first.back() < 0.9 * first.front());

  const support::TemporaryFolder folder;
  sk::save_npy(folder / "x.npy", x);
  const std::vector<double> again = losses(sk::data::from_tensors(sk::load_npy<std::int32_t, 2>(folder / "x.npy"), next), 2);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(again[i] == Approx(first[i]).epsilon(1e-4));
}

TEST_CASE("A fit refuses a token that the network does not know, before anything has been changed", "[train]") {
  const std::vector<std::array<std::int32_t, length>> x{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 65, 4, 5, 6, 7}};
  const std::vector<int> y{1, 2};
  CHECK_THROWS_WITH(losses(sk::data::from_tensors(x, y), 1), Catch::Contains("at position 3; the network has 65 tokens"));
}
