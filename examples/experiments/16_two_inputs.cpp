// SPDX-License-Identifier: Apache-2.0
// A network that is no chain: a bill shows a digit, the price of a piece, and says beside it how many pieces there are, and the
// discount. Read are the digit (a class) and what is to be paid (a number): two inputs, two outputs, two losses.
// ctest: --samples 8000 --epochs 8 --accuracy 0.92 --error 0.07 --threads 2
#include <cstdio>
#include <vector>

#include <skein/data/join.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/skein.hpp>
#include <skein/train/metrics/graph_metric.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using nn::Apply, nn::From, nn::Input, nn::Output, nn::To;

namespace {

struct picture;
struct terms;
struct seen;
struct digit;
struct known;
struct both;
struct total;

// clang-format off
struct Reader : nn::Sequential<
    nn::Conv2d<8, sk::Kernel<5>, sk::Stride<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<32>, nn::Relu> {};
struct Bill : nn::Graph<
    Input<picture, sk::Shape<28, 28, 1>>, Input<terms, sk::Shape<2>>,
    Apply<Reader, From<picture>, To<seen>>,
    Apply<nn::Linear<10>, From<seen>, To<digit>>,
    Apply<nn::Sequential<nn::Linear<32>, nn::Relu>, From<terms>, To<known>>,
    Apply<nn::Concatenate, From<digit, seen, known>, To<both>>,
    Apply<nn::Sequential<nn::Linear<48>, nn::Relu, nn::Linear<1>>, From<both>, To<total>>,
    Output<digit>, Output<total>> {};
// clang-format on
using Model = sk::Model<Bill, Bill::input>;

struct Options {
  long samples = 20'000;
  int epochs = 10, threads = 0;
  double accuracy = 0, error = 1e9;  // what must be reached
  std::uint64_t seed = 1;

  void flags(sk::Flags& f) {
    f.about("A network with two inputs, two outputs and two losses");
    f("samples", samples, "to train with").within(100, 10'000'000);
    f("epochs", epochs).within(1, 10'000);
    f("threads", threads, "0: the cores").within(0, 1024);
    f("accuracy", accuracy, "fails where fewer digits are read, 0 to 1");
    f("error", error, "fails where the totals are further off");
    f("seed", seed);
  }
};

// [quote data]
/// Pictures with their digits as class numbers; pieces and discount with what is to be paid.
auto bills(long samples, sk::Seed seed) {
  const auto pictures = sk::data::synthetic_digits(samples, seed);
  std::vector<float> said, paid;
  for (long i = 0; i < samples; ++i) {
    const float pieces = sk::random_uniform(seed.value, 7, static_cast<std::uint64_t>(2 * i)),
                discount = 0.5f * sk::random_uniform(seed.value, 7, static_cast<std::uint64_t>(2 * i + 1));
    said.insert(said.end(), {pieces, discount});
    paid.push_back(static_cast<float>(pictures.label(i)) / 9 * pieces * (1 - discount));
  }
  return sk::data::join(pictures, sk::data::from_tensors(said, sk::Extents{1, {2}}, paid));
}
// [end]

int run(const Options& o) {
  const auto training = bills(o.samples, sk::Seed{o.seed}), test = bills(o.samples / 5, sk::Seed{o.seed + 1});
  // [quote loss]
  Model model{sk::Seed{1}};
  const auto loss = nn::graph_loss<Model>(nn::on<digit>(nn::CrossEntropy{}), nn::on<total>(nn::Mse{}, 10));
  sk::Trainer trainer{model, loss, sk::optim::Adam{.lr = 0.002f}};
  const sk::History history =
      trainer.fit(training, {.epochs = o.epochs,
                             .batch = 50,
                             .validate = test,
                             .metrics = {sk::train::metric_on<digit>(loss, sk::train::Accuracy{}, "digit"),
                                         sk::train::metric_on<total>(loss, sk::train::MeanAbsoluteError{}, "total")},
                             .threads = o.threads});
  // [end]
  std::fputs(sk::summary(model).c_str(), stdout);
  const sk::train::Scores& scores = history.back().validation;
  const double accuracy = scores.metric_value(0), error = scores.metric_value(1);
  std::printf("of %ld bills not seen before %.1f %% of the digits are read; the totals are off by %.3f on average\n",
              o.samples / 5, 100 * accuracy, error);
  return accuracy >= o.accuracy && error <= o.error ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return sk::run<Options>(argc, argv, run); }
