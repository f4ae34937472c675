// SPDX-License-Identifier: Apache-2.0
// How long does a LeNet-5 step take (batch 128, SGD with momentum), on one thread and on two; how long MNIST to 98 % test
// accuracy; and what of that holds for networks that are not LeNet, whose layers say which kernel runs them?
#include "support/training.hpp"

namespace {
using namespace bench;
using Loss = nn::CrossEntropy;
constexpr sk::optim::Sgd sgd{.lr = 0.05f, .momentum = 0.9};
constexpr int most_epochs = 12;

struct StopAt {
  double accuracy;
  void on_epoch_end(const sk::train::EpochRecord& e, sk::train::FitControl& c) const {
    if (e.validation.accuracy >= accuracy) c.stop("enough");
  }
};

/// The same images, initial weights and order of samples on both sides; evaluated after every epoch.
bool mnist(Report& report) {
  const auto digits = sk::data::mnist_or_synthetic();
  const Samples<LeNet, Loss> samples(128);
  const Exchange exchange;
  ModelOf<LeNet> model{sk::Seed{7}};
  for (const auto& [name, set] : {std::pair{std::string("train"), &digits.train}, std::pair{std::string("test"), &digits.test}}) {
    exchange.write((name + ".images").c_str(), set->stored(0), static_cast<std::size_t>(set->size() * 784));
    std::vector<std::int32_t> labels;
    for (long i = 0; i < set->size(); ++i) labels.push_back(set->label(i));
    exchange.write((name + ".labels").c_str(), labels.data(), labels.size());
  }
  sk::data::Loader<> loader(digits.train, {.batch = 128, .seed = model.seed(), .prefetch = sk::data::Prefetch::off});
  for (int e = 0; e < most_epochs; ++e) {
    std::vector<std::int64_t> order;
    const auto permutation = loader.order(e);
    for (std::int64_t i = 0; i < digits.train.size(); ++i) order.push_back(permutation(i));
    exchange.write(("order" + std::to_string(e)).c_str(), order.data(), order.size());
  }
  const auto peer =
      best_peer("training.py", hand_over(exchange, samples, model, sgd), variants(2, true, report.quick()), report.quick());

  const auto train = digits.train.normalize(0.1307, 0.3081), test = digits.test.normalize(0.1307, 0.3081);
  double epochs = 0, accuracy = 0, peer_epochs = 0, peer_accuracy = 0;
  std::vector<double> ours, theirs, ratios;
  for (int i = 0; i < (report.quick() ? 1 : 5); ++i) {
    ModelOf<LeNet> fresh{sk::Seed{7}};
    sk::Trainer trainer{fresh, Loss{}, sgd};
    const double start = clock_seconds(CLOCK_MONOTONIC);
    const auto history = trainer.fit(
        train,
        {.epochs = most_epochs, .batch = 128, .validate = test, .callbacks = {StopAt{0.98}}, .progress = false, .threads = 2});
    ours.push_back(clock_seconds(CLOCK_MONOTONIC) - start);
    epochs = static_cast<double>(history.size());
    accuracy = history.back().validation.accuracy;
    if (!peer) continue;
    double seconds = 0;
    std::istringstream(peer->ask("fit 0.98 " + std::to_string(most_epochs))) >> seconds >> peer_epochs >> peer_accuracy;
    theirs.push_back(seconds);
    ratios.push_back(ours.back() / seconds);
  }
  Line l{
      .metric = "MNIST to 98 % test accuracy", .ours = median(ours), .unit = "s", .must = {0.35}, .hope = {0.22}, .threads = 2};
  l.add(digits.source + ": " + number(epochs) + " epochs, " + number(100 * accuracy) + " %");
  l.peer_name = "PyTorch (not at hand)";
  if (peer) {
    l.peer = median(theirs);
    l.peer_name = "PyTorch, " + peer->name();
    l.ratio = bootstrap(ratios);
    l.add("peer " + number(peer_epochs) + " epochs, " + number(100 * peer_accuracy) + " %");
    l.accepted = accuracy >= 0.98 && peer_accuracy >= 0.98;
  }
  report.add(l);
  return accuracy >= 0.98;
}

template <class Network> bool other(Report& report, const char* name, double rate) {
  report.say(std::string(name) + ":\n" + sk::summary<ModelOf<Network>>());
  bool right = true;
  for (int threads : {1, 2})
    right &= measure_step<Network, Loss>(report, {.metric = std::string("step of ") + name + ", batch 128", .threads = threads},
                                         128, sgd, rate, !report.quick());
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("lenet", options(argc, argv));
  const double rate = gemm_rate(report.quick());
  report.say("a core's sgemm: " + number(1e-9 * rate) + " GFLOP/s\n" + sk::summary<ModelOf<LeNet>>());
  bool right = measure_step<LeNet, Loss>(report, {.metric = "step, batch 128", .must = {0.30}, .hope = {0.20}, .threads = 1}, 128,
                                         sgd, rate);
  right &= measure_step<LeNet, Loss>(report, {.metric = "step, batch 128", .must = {0.28}, .hope = {0.17}, .threads = 2}, 128,
                                     sgd, rate);
  right &= mnist(report);
  right &= other<OddWidths>(report, "odd widths", rate);
  right &= other<Strided>(report, "stride 2", rate);
  right &= other<FiveChannels>(report, "5 channels, 3x3 pooling", rate);
  return report.finish(right);
}
