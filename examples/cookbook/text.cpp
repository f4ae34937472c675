// SPDX-License-Identifier: Apache-2.0
// A text, character by character: an LSTM whose state goes on from batch to batch learns it on two ranks, then writes.
#include <skein/data/map_npy.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/skein.hpp>

#include <cstdio>
#include <string>
#include <vector>
namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;  // "table"_p

constexpr int letters = 27, length = 16, streams = 8;

/// A row of a trained table for each token: (T) to (T, Width).
template <int Vocabulary, int Width> struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), Width},
            .parameters = {{"table", {Vocabulary, Width}, sk::Init::lecun_normal}},
            .tokens = Vocabulary};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};
struct Reader : nn::Sequential<Embedding<letters, 8>, nn::Lstm<48, sk::Stateful>, nn::EachPosition<nn::Linear<letters>>> {};

char letter(int token) { return token == 0 ? ' ' : static_cast<char>('a' + token - 1); }

// [quote write]
/// Stands for a text that one has, as tokens: 0 for a blank, 1 to 26 for a to z.
std::vector<std::int32_t> song() {
  const std::string verse = "row row row your boat gently down the stream merrily merrily merrily merrily life is but a dream ";
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 60; ++i)
    for (const char c : verse) tokens.push_back(c == ' ' ? 0 : c - 'a' + 1);
  return tokens;
}
// [end]

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const std::vector<std::int32_t> text = song();
    // [quote order]
    const sk::data::NextTokens<> windows(text, {.length = length, .vocabulary = letters});
    const std::int64_t each = windows.size() / streams;  // the text in eight parts of so many windows
    std::vector<std::int64_t> order;                     // the first window of each part, then the second of each
    for (std::int64_t w = 0; w < each; ++w)
      for (std::int64_t part = 0; part < streams; ++part) order.push_back(part * each + w);
    const auto parts = sk::data::subset(windows, order);
    // [end]
    sk::spawn(2, [&](sk::ThreadComm& world) {
      // [quote train]
      sk::data::Loader<> loader{
          parts, {.batch = streams, .shuffle = false, .ranks = world.size(), .rank = world.rank(), .tokens = true}};
      sk::Model<Reader, sk::Tokens<length>> model{sk::Seed{1}};
      sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = loader.capacity(), .threads = 1}};
      sk::optim::BoundOptimizer optimizer{sk::optim::Adam{.lr = 0.01f}, model};
      for (int epoch = 0; epoch < 8; ++epoch) {
        executor.reset_states();
        for (const sk::data::Batch<>& batch : loader.epoch(epoch)) {
          executor.forward_backward(batch, {.of_samples = batch.global_count});
          world.all_reduce(model.gradients(), sk::Sum{});
          optimizer.step(model, {.clip_norm = 1});
        }
      }
      // [end]
      if (world.rank() != 0) return;
      // [quote write_text]
      auto one = model.with_input<sk::Tokens<1>>();  // the same weights, a character at a time
      sk::Executor writer{one, nn::CrossEntropy{}, {.capacity = 1, .threads = 1}};
      std::string written;
      for (std::int32_t token = 0; written.size() < 40; written += letter(token)) {
        writer.evaluate(sk::BatchView<>{.pitch = 1, .count = 1, .tokens = &token});  // goes on from the state before
        const sk::Tensor<float, 1> logits(std::span<const float>(writer.outputs(), letters), sk::dims(letters));
        const auto likely = sk::eval(exp((logits - max(logits)) / 0.5f));  // 0.5: the temperature
        float left = sk::random_uniform(1, 0, written.size()) * sum(likely);
        for (token = 0; token + 1 < letters && (left -= likely(token)) > 0;) ++token;
      }
      // [end]
      std::printf("%s\n", written.c_str());
    });
  });
}
