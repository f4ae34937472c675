// SPDX-License-Identifier: Apache-2.0
// How long does a step of the tutorial's regression take: 1-80-80-40-1, batch 1000, squared error, SGD; on one thread, on two?
// And how long do its 10,000 epochs (800,000 steps) take the Trainer on two, loader and records included: extrapolated from a
// few, or, with --epochs 10000 (or fewer), that alone. (The tutorial on 1, 2, 4, 8 K80 GPUs: 934, 489, 249, 139 s.)
#include "support/training.hpp"

namespace {
using namespace bench;

bool whole_training(Report& report, int epochs, double rate) {
  constexpr long samples = 80'000, batch = 1000;
  std::vector<float> x, y;
  for (long i = 0; i < samples; ++i) {
    x.push_back(20 * sk::random_uniform(1, 1, static_cast<std::uint64_t>(i)));
    y.push_back(std::sqrt(x.back()) * std::sin(3.14f * x.back() / 5));
  }
  const auto set = sk::data::from_tensors(x, y);
  ModelOf<FunctionFit> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.005f}};
  const sk::History history = trainer.fit(set, {.epochs = epochs, .batch = batch, .progress = false, .threads = 2});
  std::vector<double> seconds;
  for (const auto& epoch : history) seconds.push_back(epoch.seconds);
  const double first = history.begin()->training.loss, last = history.back().training.loss;
  Line l{.metric = "10,000 epochs by the Trainer",
         .ours = 1e4 * history.seconds() / epochs,
         .unit = "s",
         .must = {{}, 1.35},
         .hope = {139},
         .threads = 2};
  l.floor = 1e4 * step_flops<FunctionFit>(batch) * (samples / batch) / (2 * rate);
  l.add(epochs == 10'000 ? "measured" : "extrapolated from " + std::to_string(epochs));
  l.add("an epoch: median " + number(1e3 * median(seconds)) + " ms, least " + number(1e3 * minimum(seconds)) + " ms; loss " +
        number(first) + " to " + number(last) + "; the tutorial's eight K80: 139 s");
  report.add(l);
  return last < first;
}
}  // namespace

int main(int argc, char** argv) {
  int epochs = 0;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--epochs") {
      epochs = std::atoi(argv[i + 1]);
      if (epochs < 2) return std::fprintf(stderr, "function_fit: --epochs takes a number from 2\n"), 2;
      for (int k = i; k + 2 < argc; ++k) argv[k] = argv[k + 2];
      argc -= 2;
      break;
    }
  Report report("function_fit", options(argc, argv));
  const double rate = gemm_rate(report.quick());
  report.say("a core's sgemm: " + number(1e-9 * rate) + " GFLOP/s");
  if (epochs > 0) return report.finish(whole_training(report, epochs, rate));
  const sk::optim::Sgd sgd{.lr = 0.01f};
  const Line one{.metric = "step, batch 1000", .must = {0.55, 1.2}, .hope = {0.48}, .threads = 1};
  const Line two{.metric = "step, batch 1000", .must = {0.40, 1.3}, .hope = {0.33}, .threads = 2};
  bool right = measure_step<FunctionFit, nn::Mse>(report, one, 1000, sgd, rate);
  right &= measure_step<FunctionFit, nn::Mse>(report, two, 1000, sgd, rate);
  right &= whole_training(report, report.quick() ? 40 : 200, rate);
  return report.finish(right);
}
