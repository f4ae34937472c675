// SPDX-License-Identifier: Apache-2.0
// Transfer learning: a network that was trained for ten classes gets a new head for two; only the head is trained, with few
// samples.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Body = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu>;
using Digits = sk::nn::Sequential<Body, sk::nn::Linear<10>>;
using OddOrEven = sk::nn::Sequential<Body, sk::nn::Linear<2>>;

/// The digits with other labels: 0 for even ones, 1 for odd ones.
struct Parity {
  const sk::data::InMemory<std::uint8_t>& digits;
  std::int64_t size() const { return digits.size(); }
  sk::Extents sample_extents() const { return digits.sample_extents(); }
  sk::data::Target target() const { return sk::data::Target::labels(2); }
  void gather(sk::data::Indices rows, float* x, long pitch) const { digits.gather(rows, x, pitch); }
  void labels(sk::data::Indices rows, std::int32_t* out) const {
    for (const std::int64_t i : rows) *out++ = digits.label(i) % 2;
  }
};

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Digits, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
    trainer.fit(digits, {.epochs = 4, .batch = 50, .progress = false});
    trainer.save("digits.skein");

    // [quote transfer]
    const Parity parity{digits};
    const auto [train, test] = sk::data::split(parity, 0.15, sk::Seed{1});  // 300 samples to train with
    sk::Model<OddOrEven, sk::Shape<28, 28, 1>> odd{sk::Seed{2}};
    odd.load("digits.skein", {.only = "0.*"});  // the body's weights; the head keeps its initial values
    sk::Trainer head{odd, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f, .groups = {sk::optim::frozen("0.*")}}};
    const sk::History history = head.fit(train, {.epochs = 10, .batch = 25, .validate = test, .progress = false});
    // [end]
    std::printf("odd or even, with 300 samples: %.1f %% right\n", 100 * history.back().validation.accuracy);
  });
}
