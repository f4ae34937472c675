// SPDX-License-Identifier: Apache-2.0
// Which batches of tokens are refused, and how.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/nn/check_tokens.hpp>

namespace sk = skein;

namespace {
template <int Tokens> struct Knows {  // all of a model that is asked for
  struct Sizes {
    int tokens = Tokens;
  };
  static constexpr Sizes sizes{};
  using input = sk::Tokens<3>;
};
template <int Tokens> std::string refusal(std::vector<float> x) {
  try {
    sk::nn::check_tokens<Knows<Tokens>>(sk::BatchView<float>{.x = x.data(), .pitch = 4, .count = 2});
  } catch (const sk::ArgumentError& e) { return e.what(); }
  return "";
}
}  // namespace

TEST_CASE("Tokens are integers below their number; gaps are not looked at", "[nn]") {
  CHECK(refusal<5>({0, 4, 2, -7, 3, 3, 1, 99}).empty());
  CHECK(refusal<5>({0, 4, 2, 0, 3, 5, 1, 0}).find("sample 1 has the token 5") == 0);
  CHECK(refusal<5>({0, 4, 2, 0, 3, 5, 1, 0}).find("at position 1; the network has 5 tokens, the integers 0 to 4") !=
        std::string::npos);
  CHECK(refusal<5>({0, -1, 2, 0, 3, 3, 1, 0}).find("sample 0 has the token -1") == 0);
  CHECK(!refusal<5>({0, 0.5f, 2, 0, 3, 3, 1, 0}).empty());
  CHECK(!refusal<5>({0, std::nanf(""), 2, 0, 3, 3, 1, 0}).empty());
  CHECK(refusal<0>({-1, 9, 0.5f, 0, 1, 1, 1, 1}).empty());  // a network of numbers
}
