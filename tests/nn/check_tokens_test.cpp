// SPDX-License-Identifier: Apache-2.0
// Which batches of tokens are refused, and how.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/nn/check_tokens.hpp>

namespace sk = skein;

namespace {
template <int Tokens, class Input> struct Knows {  // all of a model that is asked for
  struct Sizes {
    int tokens = Tokens;
  };
  static constexpr Sizes sizes{};
  using input = Input;
};
template <class Model> std::string refusal(const sk::BatchView<float>& batch) {
  try {
    sk::nn::check_tokens<Model>(batch);
  } catch (const sk::ArgumentError& e) { return e.what(); }
  return "";
}
std::string of_tokens(std::vector<std::int32_t> tokens) {
  return refusal<Knows<5, sk::Tokens<3>>>({.pitch = 3, .count = 2, .tokens = tokens.data()});
}
}  // namespace

TEST_CASE("Tokens are integers below their number", "[nn]") {
  CHECK(of_tokens({0, 4, 2, 3, 3, 1}).empty());
  CHECK(of_tokens({0, 4, 2, 0, 3, 5}).find("sample 1 has the token 5 at position 2; the network has 5 tokens") == 0);
  CHECK(of_tokens({0, -1, 2, 0, 3, 3}).find("sample 0 has the token -1") == 0);
}
TEST_CASE("A batch of tokens is for a network that takes them, and the other way round", "[nn]") {
  const std::vector<std::int32_t> tokens{1, 2, 3};
  const std::vector<float> x{1, 2, 3};
  using Tokens = Knows<5, sk::Tokens<3>>;
  using Numbers = Knows<0, sk::Shape<3>>;
  CHECK(refusal<Tokens>({.x = x.data(), .pitch = 3, .count = 1}).find("takes 3 tokens a sample: give the batch .tokens") !=
        std::string::npos);
  CHECK(refusal<Tokens>({.pitch = 4, .count = 1, .tokens = tokens.data()}).find(".pitch = 3") != std::string::npos);
  CHECK(refusal<Tokens>({}).empty());  // a rank that has none left
  CHECK(refusal<Numbers>({.x = x.data(), .pitch = 3, .count = 1}).empty());
  CHECK(refusal<Numbers>({.pitch = 3, .count = 1, .tokens = tokens.data()}).find("the batch has tokens") == 0);
}
