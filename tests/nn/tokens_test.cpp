// SPDX-License-Identifier: Apache-2.0
// Tokens as the input of a network, and a layer that looks them up: beside plain loops, on workers, and what is refused.
#include <catch2/catch.hpp>

#include <cmath>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/precision.hpp>

#include "../support/layer_harness.hpp"
#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using own_layers::Embedding;

namespace {

template <class L> using AsLayer = nn::ExpressionLayer<L>;

/// A layer with a row of W numbers for each of V tokens, on T tokens token(b, t). `fills`: 0 has no row.
template <class L, int V, int W, int T, class S, class Token>
void has_rows(long batch, int workers, bool fills, const Token& token) {
  INFO(V << " tokens, " << W << " wide, " << T << " positions, " << batch << " samples, " << workers << " workers");
  support::LayerHarness<AsLayer<L>, sk::Tokens<T>, S> h(batch, workers);
  h.set_tokens(token);
  h.forward();
  h.backward(false);
  std::vector<double> sums(static_cast<std::size_t>(V * W));
  long wrong = 0;
  for (long b = 0; b < batch; ++b)
    for (long t = 0; t < T; ++t)
      for (long c = 0; c < W; ++c) {
        const long row = token(b, t);
        const bool none = fills && row == 0;
        wrong += h.y_at(b, t * W + c) != (none ? 0 : h.parameter_at(0, row * W + c));
        if (!none) sums[static_cast<std::size_t>(row * W + c)] += static_cast<double>(h.dy_at(b, t * W + c));
      }
  for (long i = 0; i < V * W; ++i)
    wrong += !(std::abs(static_cast<double>(h.gradients()[h.parameter_index(0, i)]) - sums[static_cast<std::size_t>(i)]) <= 1e-4);
  CHECK(wrong == 0);
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}

/// Embedding<V, W> on T tokens, of which many are the same.
template <int V, int W, int T, class S> void looks_up(long batch, int workers) {
  has_rows<Embedding<V, W>, V, W, T, S>(batch, workers, false, [](long b, long t) { return (b * 7 + t * t) % V; });
}

/// PaddedEmbedding<V, W> on T tokens, of which every third is 0.
template <int V, int W, int T, class S> void passes_over_zeros(long batch, int workers) {
  has_rows<own_layers::PaddedEmbedding<V, W>, V, W, T, S>(
      batch, workers, true, [](long b, long t) { return (b + t) % 3 == 0 ? 0 : (b * 7 + t * t) % V; });
}

template <class L> std::string refusal(long value) {
  support::LayerHarness<AsLayer<L>, sk::Tokens<6>, float> h(3);
  h.set_tokens([&](long b, long t) { return b == 2 && t == 4 ? value : 1; });
  try {
    h.forward();
  } catch (const sk::ArgumentError& e) { return e.what(); }
  return "nothing";
}

}  // namespace

TEST_CASE("An embedding gives each position the row of its token, and sums the gradients of equal tokens", "[nn]") {
  looks_up<5, 3, 4, double>(1, 1);
  looks_up<65, 16, 32, float>(9, 2);
  looks_up<65, 20, 1, float>(33, 4);
  looks_up<3, 1, 7, double>(5, 4);
}

/// What is a word, and how many tokens stand before each in the alphabet: (T) to (T, 1).
struct Marks {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = {in.last(), 1}, .tokens = 9}; }
  static void forward(auto& f) { f.y() = where(f.tokens() > 3 && f.tokens() < 7, 1.0f, 0.0f) + 10 * cast<float>(f.tokens()); }
  static void backward(auto&) {}
};

TEST_CASE("A layer's expression compares tokens: what fills a text is left out", "[nn]") {
  passes_over_zeros<5, 3, 4, double>(1, 1);
  passes_over_zeros<65, 16, 32, float>(9, 2);
  passes_over_zeros<65, 20, 1, float>(33, 4);
  passes_over_zeros<5, 1, 7, float>(5, 1);
  support::LayerHarness<AsLayer<Marks>, sk::Tokens<6>, float> h(3);
  h.set_tokens([](long b, long t) { return b + t; });
  h.forward();
  for (long b = 0; b < 3; ++b)
    for (long t = 0; t < 6; ++t) CHECK(h.y_at(b, t) == static_cast<float>((b + t > 3 && b + t < 7) + 10 * (b + t)));
}

TEST_CASE("The mean of words leaves out what fills a text", "[nn]") {
  support::LayerHarness<own_layers::MeanOfWords<5, 3>, sk::Tokens<4>, double> h(3);
  h.set_tokens([](long b, long t) { return b == 0 ? (t < 2 ? t + 1 : 0) : b == 1 ? 0 : 4; });  // 1 2 0 0, nothing, 4 4 4 4
  h.forward();
  h.backward(false);
  const auto at = [&](long token, long c) { return static_cast<double>(h.parameter_at(0, token * 3 + c)); };
  for (long c = 0; c < 3; ++c) {
    CHECK(h.y_at(0, c) == Approx((at(1, c) + at(2, c)) / 2));
    CHECK(h.y_at(1, c) == 0);
    CHECK(h.y_at(2, c) == Approx(at(4, c)));
    CHECK(h.gradients()[h.parameter_index(0, 3 + c)] == Approx(h.dy_at(0, c) / 2));
    CHECK(h.gradients()[h.parameter_index(0, c)] == 0);
  }
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}

TEST_CASE("A network over tokens agrees with finite differences", "[nn]") {
  using Net = nn::Sequential<Embedding<11, 3>, nn::Flatten, nn::Linear<4>>;
  const auto check = sk::check_gradients<Net, sk::Tokens<5>>();
  INFO(check.text());
  CHECK(check);
  CHECK(check.tried == 33 + 15 * 4 + 4);
  using Words = nn::Sequential<own_layers::MeanOfWords<5, 3>, nn::Linear<2>>;
  const auto words = sk::check_gradients<Words, sk::Tokens<4>>();
  INFO(words.text());
  CHECK(words);
  using Branches = nn::Sequential<nn::Concat<Embedding<11, 3>, Embedding<7, 2>>, nn::Flatten, nn::Linear<4>>;
  CHECK(sk::check_gradients<Branches, sk::Tokens<5>>());  // each branch looks up the same tokens
  STATIC_REQUIRE(sk::Model<Branches, sk::Tokens<5>>::sizes.tokens == 7);
}
TEST_CASE("Tokens stay integers where activations are short: no vocabulary is too large", "[nn]") {
  using Net = nn::Sequential<Embedding<100'000, 2>>;
  using Model = sk::Model<Net, sk::Tokens<3>, sk::Cpu, sk::precision::bf16>;
  STATIC_REQUIRE(std::is_same_v<Model::Element, std::int32_t>);
  Model model{sk::Seed{1}};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 2, .threads = 1, .training = false}};
  const std::vector<std::int32_t> tokens{99'999, 0, 99'998, 257, 65'537, 99'997};
  executor.evaluate(sk::BatchView<float>{.pitch = 3, .count = 2, .tokens = tokens.data()});
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t c = 0; c < 2; ++c)
      CHECK(executor.outputs()[2 * i + c] ==
            Approx(model.parameters()[static_cast<std::size_t>(tokens[i]) * 2 + c]).epsilon(0.01));
}

TEST_CASE("A token that is not in the table is refused with a sentence", "[nn]") {
  using L = Embedding<65, 8>;
  CHECK(refusal<L>(64) == "nothing");
  CHECK(refusal<L>(65).find("the token 65; the table has 65 rows, so tokens are 0 to 64") != std::string::npos);
  CHECK(refusal<L>(65).find("position 4 of sample 2") != std::string::npos);
  CHECK(refusal<L>(-1).find("the token -1") != std::string::npos);
}
