// SPDX-License-Identifier: Apache-2.0
// The tutorial's regression: a network 1-80-80-40-1 learns sqrt(x) sin(3.14 x / 5) on [0, 20] by plain SGD, in mini-batches
// and with the full batch. Prints losses and seconds beside the tutorial's, and draws the loss curves and the fit at 0, 0.5,
// ... 19.5.
// ctest: --samples 100
// ctest expects: --batch 1000 is more than the 100 samples: give a smaller one, or more --samples
// ctest: --samples 4000 --batch 100 --epochs 60 --reach 4.4 --svg fit
// ctest: --samples 2000 --batch 100 --epochs 4 --threads 1 --no-full
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
namespace sk = skein;
namespace ex = experiments;

namespace {

struct FunctionFit : sk::nn::Sequential<sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<40>,
                                        sk::nn::Relu, sk::nn::Linear<1>> {};
using Model = sk::Model<FunctionFit, sk::Shape<1>, sk::Cpu>;

double target(double x) { return std::sqrt(x) * std::sin(3.14 * x / 5); }

struct Options {
  long samples = 80'000, batch = 1000;
  int epochs = 1000, threads = 0;
  float lr = 0.005f;
  double reach = std::numeric_limits<double>::max();  // the training loss that mini-batches must come below
  std::uint64_t seed = 1;
  bool full = true;
  std::string svg;

  void flags(sk::Flags& f) {
    f.about("The 1-80-80-40-1 regression: mini-batches against the full batch");
    f("samples", samples, "x is drawn from [0, 20]").within(1, 100'000'000);
    f("batch", batch, "samples of a mini-batch").within(1, 100'000'000);
    f("epochs", epochs, "of each way to train").within(1, 1'000'000);
    f("lr", lr, "learning rate").within(1e-12, 10);
    f("threads", threads, "0: the cores").within(0, 1024);
    f("reach", reach, "fails where the loss of the mini-batches stays above");
    f("seed", seed, "of samples, weights and order");
    f("full", full, "train with the full batch as well");
    f("svg", svg, "draws NAME_fit.svg and NAME_loss.svg");
  }
};

/// What came of one way to train.
struct Outcome {
  std::string name{};
  sk::History history{};
  long steps = 0;
  std::vector<double> fit{};  // at the places of the plot
};

Outcome train(const std::string& name, const Options& o, long batch, const auto& samples, const sk::Tensor<float, 2>& places) {
  Model model{sk::Seed{o.seed}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = o.lr}};
  Outcome out;
  out.name = name;
  out.history = trainer.fit(samples, {.epochs = o.epochs, .batch = batch, .progress = false, .threads = o.threads});
  out.steps = o.epochs * ((o.samples + batch - 1) / batch);
  const auto y = trainer.predict(places);  // (places, 1)
  for (long i = 0; i < places.extent(0); ++i) out.fit.push_back(static_cast<double>(y(i, 0)));
  return out;
}

int run(const Options& o) {
  ex::check_at_most("batch", o.batch, o.samples, "samples");
  ex::check_outputs({.svg = o.svg});
  std::vector<float> x, y;
  for (long i = 0; i < o.samples; ++i) {
    x.push_back(20 * sk::random_uniform(o.seed, 1, static_cast<std::uint64_t>(i)));
    y.push_back(static_cast<float>(target(static_cast<double>(x.back()))));
  }
  const auto samples = sk::data::from_tensors(x, y);
  sk::Tensor<float, 2> places(sk::dims(40, 1));
  for (long i = 0; i < 40; ++i) places(i, 0) = 0.5f * static_cast<float>(i);

  std::vector<Outcome> outcomes;
  outcomes.push_back(train("mini-batches of " + std::to_string(o.batch), o, o.batch, samples, places));
  if (o.full) outcomes.push_back(train("full batch of " + std::to_string(o.samples), o, o.samples, samples, places));

  std::printf("%ld samples, lr %g, %d epochs\n%-26s %9s %12s %10s %12s %16s\n", o.samples, static_cast<double>(o.lr), o.epochs,
              "", "steps", "loss", "seconds", "us a step", "10,000 epochs");
  for (const Outcome& c : outcomes) {
    const double seconds = c.history.seconds();
    std::printf("%-26s %9ld %12.5f %10.3f %12.1f %14.1f s%s\n", c.name.c_str(), c.steps, c.history.back().training.loss, seconds,
                1e6 * seconds / static_cast<double>(c.steps), seconds * 10'000 / o.epochs,
                o.epochs == 10'000 ? "" : ", extrapolated");
  }
  if (o.samples == 80'000 && o.batch == 1000)
    std::printf("the tutorial's 10,000 epochs on 1, 2, 4, 8 K80 GPUs: 934, 489, 249, 139 s\n");

  double worst = 0;
  std::printf("%6s %10s %10s\n", "x", "target", "fit");
  for (long i = 0; i < 40; ++i) {
    const double at = static_cast<double>(places(i, 0)), fit = outcomes[0].fit[static_cast<std::size_t>(i)];
    worst = std::max(worst, std::isfinite(fit) ? std::fabs(fit - target(at)) : HUGE_VAL);
    if (i % 4 == 0) std::printf("%6.1f %10.4f %10.4f\n", at, target(at), fit);
  }
  const double loss = outcomes[0].history.back().training.loss;
  std::printf("the fit's largest error at these places: %.4f; loss %.5f\n", worst, loss);

  if (!o.svg.empty()) {
    sk::draw::Plot fits{.title = "sqrt(x) sin(3.14 x / 5)", .x_label = "x", .y_label = "y"};
    sk::draw::Plot losses{.title = "Mean squared error", .x_label = "epoch", .y_label = "training loss", .log_y = true};
    sk::draw::Series truth{.name = "target", .marks = false, .dashed = true};
    for (int i = 0; i <= 200; ++i) truth.x.push_back(0.1 * i), truth.y.push_back(target(0.1 * i));
    for (const Outcome& c : outcomes) {
      sk::draw::Series fit{.name = c.name, .y = c.fit}, curve{.name = c.name, .marks = false};
      for (long i = 0; i < 40; ++i) fit.x.push_back(static_cast<double>(places(i, 0)));
      for (const auto& epoch : c.history) curve.x.push_back(epoch.epoch), curve.y.push_back(epoch.training.loss);
      fits.series.push_back(std::move(fit));
      losses.series.push_back(std::move(curve));
    }
    fits.series.push_back(std::move(truth));
    fits.write(o.svg + "_fit.svg");
    losses.write(o.svg + "_loss.svg");
    std::printf("drawn: %s_fit.svg, %s_loss.svg\n", o.svg.c_str(), o.svg.c_str());
  }
  if (!(loss <= o.reach)) {
    if (std::isfinite(loss)) std::printf("the loss is not below %g\n", o.reach);
    else std::printf("training diverged: take a smaller --lr\n");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return sk::run<Options>(argc, argv, run); }
