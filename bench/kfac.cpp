// SPDX-License-Identifier: Apache-2.0
// What does K-FAC cost, and what does it gain? Its average step on ResNet-20 (32 x 32, batch 128, Cholesky) beside plain SGD's
// and beside kfac-pytorch's with the same settings; and the times of LeNet on Fashion-MNIST and ResNet-20 on
// CIFAR-10 to a test accuracy, beside SGD with the best settings of a grid.
#include <functional>
#include <optional>

#include <skein/optim/kfac/kfac.hpp>

#include "support/training.hpp"

namespace {
using namespace bench;
using Loss = nn::CrossEntropy;

struct ResNet20 : sk::models::CifarResNet<20> {
  static constexpr const char* words = "resnet20";
};
constexpr sk::optim::Sgd sgd{.lr = 0.1f, .momentum = 0.9};
constexpr int cycle = 10;  // steps from one update of the inverses to the next: what is timed is whole cycles

constexpr sk::optim::Kfac settings(int factor_every) {
  return {.damping = 0.003, .factor_every = factor_every, .inverse_every = cycle, .inverse = sk::optim::KfacInverse::cholesky};
}
auto preconditioned(int factor_every) { return sk::optim::chain(settings(factor_every), sgd); }
using Preconditioned = Training<ResNet20, Loss, sk::parallel::SingleProcess, decltype(preconditioned(1))>;

/// Whole cycles of a training.
template <class T> Candidate cycles(T& training) {
  return [&training](long n) { return timed(n * cycle, [&] { training.step(); }); };
}
Plan few_rounds(bool quick) { return {0.1, quick ? 4 : 12}; }

/// The layers' factors by symmetric products, half of the work, with so many updates in a cycle; inverses; four products a layer
/// and step. Of a step of SGD: see step_flops.
double kfac_flops(long batch, int factor_every) {
  double factors = 0, inverses = 0, products = 0;
  for (const auto& layer : ModelOf<ResNet20>::program.layers()) {
    const double a = static_cast<double>(layer.curvature[0].a), g = static_cast<double>(layer.curvature[0].g);
    if (a == 0 || layer.curvature[0].unit_wise) continue;
    const double pixels = static_cast<double>(layer.flops) / (2 * a * g);
    factors += static_cast<double>(batch) * pixels * (a * a + g * g);
    inverses += a * a * a + g * g * g;
    products += 2 * a * g * (a + g);
  }
  return factors / factor_every + inverses / cycle + products;
}

/// The fastest variant of kfac-pytorch, or nothing. One cycle each decides: a cycle takes seconds.
std::unique_ptr<Peer> kfac_pytorch(const std::vector<std::string>& arguments, int threads) {
  std::unique_ptr<Peer> best;
  if (!Peer::available()) return best;
  double least = 1e9;
  for (int t = 1; t <= threads; ++t)
    for (const bool channels_last : {false, true}) {  // (kfac-pytorch 0.4.2 fails with the second)
      const PeerVariant v{t, false, channels_last, false, {}};
      try {
        auto peer = std::make_unique<Peer>("kfac_pytorch.py", arguments, v);
        (void)peer->run(1);
        const double seconds = peer->run(1).wall / cycle;
        std::cout << "  kfac-pytorch with " << v.name() << ": " << 1e3 * seconds << " ms a step" << std::endl;
        if (seconds < least) least = seconds, best = std::move(peer);
      } catch (const std::exception& e) {
        std::cout << "  kfac-pytorch with " << v.name() << " left out: " << e.what() << std::endl;
      }
    }
  return best;
}

/// Against SGD's step, and against kfac-pytorch's.
bool steps(Report& report, int factor_every, int threads, double rate, bool against_sgd) {
  const long batch = 128;
  const std::string what = "ResNet-20 step, batch 128, factors every " + std::to_string(factor_every) + ", inverses every 10";
  const Samples<ResNet20, Loss> samples(batch);
  Training<ResNet20, Loss> plain(samples, sgd, threads);
  Preconditioned ours(samples, preconditioned(factor_every), threads);
  const double floor = 1e3 * (step_flops<ResNet20>(batch) + kfac_flops(batch, factor_every)) / (rate * threads);
  const std::string why = void_reason([&](long n) { return plain.run(n); }, {0.002, report.quick() ? 40 : 80});
  const auto fill = [&](Line& l, const Comparison& c) {
    l.ours = 1e3 * c.a / cycle;
    l.peer = 1e3 * c.b / cycle;
    l.ratio = c.ratio;
    l.floor = floor;
    l.threads = threads;
    l.add("least " + number(1e3 * c.least_a / cycle) + " against " + number(1e3 * c.least_b / cycle));
    if (!why.empty()) l.accepted = false, l.add(why);
  };
  if (against_sgd) {
    Line l{.metric = what, .peer_name = "our SGD", .must = {1.25}, .hope = {1.15}};
    fill(l, compare(cycles(ours), cycles(plain), few_rounds(report.quick())));
    report.add(l);
  }
  const Exchange exchange;
  ours.reset();  // the peer begins with these weights too
  auto arguments = hand_over(exchange, samples, ours.model(), sgd);
  for (const std::string& more : {std::string("--factor-every"), std::to_string(factor_every)}) arguments.push_back(more);
  const std::unique_ptr<Peer> peer = kfac_pytorch(arguments, threads);
  Line l{.metric = what, .peer_name = "kfac-pytorch (not at hand)", .must = {0.50}, .hope = {0.30}};
  if (!peer) {
    const Comparison c = alone(cycles(ours), few_rounds(report.quick()));
    l.ours = 1e3 * c.a / cycle, l.floor = floor, l.threads = threads;
    report.add(l);
    report.say(
        "  kfac-pytorch is missing: pip install --no-deps git+https://github.com/gpauloski/kfac-pytorch, into the peer's "
        "environment");
    return true;
  }
  const std::string wrong = difference(ours.losses(8), peer->losses(8));
  if (!wrong.empty()) l.accepted = false, l.add(wrong);
  l.peer_name = "kfac-pytorch, " + peer->name();
  fill(l, compare(
              cycles(ours), [&](long n) { return peer->run(n); }, few_rounds(report.quick())));
  report.add(l);
  return wrong.empty();
}

// ---- time to an accuracy

constexpr int seeds = 3;
constexpr long batch = 128;

/// What both sides of a comparison have to reach, and how their rate goes.
struct Goal {
  double wanted;    ///< test accuracy
  double epochs;    ///< the most that are trained, up to a whole one
  long look_every;  ///< steps from one evaluation to the next; these are not timed
  int in_a_row;     ///< evaluations that have to reach it, one after the other, so that no single lucky one decides
  double rises;     ///< the epochs over which the rate rises; it falls in a straight line to 0 at the end of the epochs

  double factor(double epoch) const { return std::min(epoch / rises, 1.0) * std::max(1 - epoch / epochs, 0.01); }
};

/// Seconds and steps of a training until the test accuracy was as wanted, in so many evaluations in a row.
struct Reached {
  double seconds = 1e9;
  long steps = 0;
};
template <class Network, class TrainSet, class TestSet, class Optimizer>
Reached train_until(const Goal& goal, const TrainSet& train, const TestSet& shown, const Optimizer& optimizer, sk::Seed seed,
                    double give_up) {
  using Model = ModelOf<Network>;
  Model model{seed};
  sk::train::TrainStep step(model, Loss{}, optimizer, sk::parallel::SingleProcess{});
  step.reserve({.capacity = 1000, .threads = 2});
  sk::data::Loader loader(train, {.batch = batch, .seed = seed, .last = sk::data::LastBatch::drop});
  sk::data::Loader test(shown, {.batch = 1000, .shuffle = false});
  const auto accuracy = [&] {
    bool first = true;
    sk::nn::LossSums sums;
    for (const auto& b : test.epoch(0)) sums = step.evaluate(b, !std::exchange(first, false));
    return sums.correct / sums.weight;
  };
  const double steps_of_epoch = static_cast<double>(train.size() / batch);
  Reached r{0, 0};
  int reached = 0;
  for (int e = 0; e < goal.epochs; ++e) {
    double begin = clock_seconds(CLOCK_MONOTONIC);
    for (const auto& b : loader.epoch(e)) {
      const double factor = goal.factor(static_cast<double>(++r.steps) / steps_of_epoch);
      if (!std::isfinite(step.step(b, {.lr_factor = factor}).mean())) return {};
      if (r.steps % goal.look_every != 0) continue;
      r.seconds += clock_seconds(CLOCK_MONOTONIC) - begin;
      reached = accuracy() >= goal.wanted ? reached + 1 : 0;
      if (reached == goal.in_a_row) return r;
      begin = clock_seconds(CLOCK_MONOTONIC);
    }
    r.seconds += clock_seconds(CLOCK_MONOTONIC) - begin;
    if (r.seconds > give_up) return {};
  }
  return {};
}

/// A training by one setting: with a seed, and seconds to give up after.
using Train = std::function<Reached(sk::Seed, double)>;

/// The setting that is fastest over the seeds that settings are chosen by.
struct Tuned {
  std::string name;
  Train train;
  double seconds = 1e9;  ///< mean
};
/// Tries a setting with each of these seeds.
void try_setting(Tuned& best, const std::string& name, double patience, const Train& train) {
  double seconds = 0, steps = 0;
  for (int k = 1; k <= seeds && seconds < 1e8; ++k) {
    const Reached r = train(sk::Seed{static_cast<std::uint64_t>(k)}, patience * best.seconds);
    seconds += r.seconds / seeds, steps += static_cast<double>(r.steps) / seeds;
  }
  std::cout << "  " << name << ": "
            << (seconds < 1e8 ? number(seconds) + " s, " + number(steps) + " steps" : "does not get there, or is slow")
            << std::endl;
  if (seconds < best.seconds) best = {name, train, seconds};
}

/// A line of the report: both sides' best settings with seeds that they were not chosen by, in turns.
bool add_times(Report& report, const std::string& what, const Goal& goal, const Tuned& ours, const Tuned& plain) {
  const std::string metric = what + " to " + number(100 * goal.wanted) + " % test accuracy, 3 seeds";
  std::vector<double> ratios;
  double seconds[2] = {}, steps[2] = {};
  if (ours.train && plain.train)
    for (int k = seeds + 1; k <= 2 * seeds; ++k) {
      const sk::Seed seed{static_cast<std::uint64_t>(k)};
      const Reached a = ours.train(seed, 1e9), b = plain.train(seed, 1e9);
      std::cout << "  seed " << k << ": " << a.seconds << " s, " << a.steps << " steps against " << b.seconds << " s, " << b.steps
                << " steps" << std::endl;
      if (std::max(a.seconds, b.seconds) > 1e8) break;
      ratios.push_back(a.seconds / b.seconds);
      seconds[0] += a.seconds / seeds, seconds[1] += b.seconds / seeds;
      steps[0] += static_cast<double>(a.steps) / seeds, steps[1] += static_cast<double>(b.steps) / seeds;
    }
  if (ratios.size() != seeds) {
    report.say("  " + metric + ": not every seed gets there");
    return false;
  }
  Line l{.metric = metric,
         .ours = seconds[0],
         .peer = seconds[1],
         .peer_name = plain.name,
         .unit = "s",
         .ratio = bootstrap(ratios),
         .must = {0.90},
         .hope = {0.70},
         .threads = 2};
  l.add(ours.name + ", " + number(steps[0]) + " steps against " + number(steps[1]) + "; the settings were chosen by other seeds");
  report.add(l);
  return true;
}

/// LeNet on Fashion-MNIST.
bool lenet_to_accuracy(Report& report) {
  if (sk::data::find_images("fashion-mnist").empty()) {
    report.say("Fashion-MNIST is not there: SKEIN_DATA names the folder that has fashion-mnist/");
    return true;
  }
  const auto set = sk::data::fashion_mnist();
  Goal goal{.wanted = 0.88, .epochs = 0, .look_every = 50, .in_a_row = 2, .rises = 0.25};
  const auto by = [&](const auto& optimizer) -> Train {
    return [&set, goal, optimizer](sk::Seed seed, double give_up) {
      return train_until<LeNet>(goal, set.train, set.test, optimizer, seed, give_up);
    };
  };
  const auto falling = [&] { return " falling over " + number(goal.epochs) + " epochs"; };
  Tuned plain, ours;
  for (const double epochs : {2.0, 2.5, 3.0, 4.0}) {
    goal.epochs = epochs;
    for (const double momentum : {0.9, 0.95})
      for (const float rate : {0.02f, 0.03f, 0.05f, 0.065f, 0.08f, 0.1f}) {
        if (report.quick() ? epochs != 3 || momentum != 0.9 || rate < 0.05f || rate > 0.08f : momentum * rate > 0.09) continue;
        const sk::optim::Sgd optimizer{.lr = rate, .momentum = momentum};
        try_setting(plain, "SGD, rate " + number(rate) + falling() + ", momentum " + number(momentum), 1.5, by(optimizer));
      }
  }
  // With a damping this large A is what the gradient is divided by, G little; the rate goes with the damping's square.
  struct Division {
    double damping;
    float rate;
  };
  for (const double epochs : {1.5, 1.75, 2.0, 2.5}) {
    goal.epochs = epochs;
    for (const Division d : {Division{1.2, 0.1f}, {1.2, 0.14f}, {1.2, 0.19f}, {2.4, 0.5f}, {2.4, 0.7f}, {0.6, 0.05f}})
      for (const int every : {50, 100}) {
        if (report.quick() && (epochs != 1.75 || d.damping != 1.2 || d.rate < 0.12f)) continue;
        const auto optimizer = sk::optim::chain(sk::optim::Kfac{.damping = d.damping,
                                                                .factor_every = every,
                                                                .inverse_every = every,
                                                                .kl_clip = 0,
                                                                .inverse = sk::optim::KfacInverse::cholesky,
                                                                .inverse_rank = 16,
                                                                .factor_bias_correction = true},
                                                sk::optim::Sgd{.lr = d.rate, .momentum = 0.9});
        try_setting(ours,
                    "K-FAC every " + std::to_string(every) + " steps, damping " + number(d.damping) + ", rate " + number(d.rate) +
                        falling(),
                    1.5, by(optimizer));
      }
  }
  return add_times(report, "LeNet on Fashion-MNIST", goal, ours, plain);
}

/// ResNet-20 on CIFAR-10, with crops and flips. How many epochs the rate takes to fall to 0 is tuned as the rate is: who needs
/// fewer epochs is sooner there. Without kl-clip, since what it scales down is as long at any rate.
bool resnet_to_accuracy(Report& report) {
  std::optional<sk::data::SourcedTrainTest> found;
  try {
    found = sk::data::cifar10();
  } catch (const sk::FileError& e) {
    if (e.offset() >= 0) throw;  // a file is malformed
    report.say("CIFAR-10 is not there: SKEIN_DATA names the folder that has cifar10/");
    return true;
  }
  const auto& set = *found;
  const auto shown = map(set.test, sk::data::cifar10_channels);
  Goal goal{.wanted = 0.65, .epochs = 0, .look_every = 13, .in_a_row = 2, .rises = 1};
  const auto by = [&](const auto& optimizer) -> Train {
    return [&, goal, optimizer](sk::Seed seed, double give_up) {
      const auto train = map(map(set.train, sk::data::CropAndFlip{.seed = seed}), sk::data::cifar10_channels);
      return train_until<ResNet20>(goal, train, shown, optimizer, seed, give_up);
    };
  };
  Tuned plain, ours;
  // A full run tries them all, in some hours; a quick one takes what such trials have found.
  const auto consider = [&](Tuned& best, const std::string& name, double epochs, const auto& optimizer, bool found) {
    goal.epochs = epochs;
    const std::string whole = name + " falling over " + number(epochs) + " epochs";
    if (!report.quick()) try_setting(best, whole, 1.2, by(optimizer));
    else if (found) best = {whole, by(optimizer)};
  };
  const auto momentum_sgd = [](float rate) { return sk::optim::Sgd{.lr = rate, .momentum = 0.9, .weight_decay = 5e-4f}; };
  struct Division {
    double damping;
    float rate;
  };
  for (const double epochs : {5.0, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0}) {
    for (const float rate : {0.1f, 0.2f, 0.3f, 0.5f})
      consider(plain, "SGD, rate " + number(rate), epochs, momentum_sgd(rate), epochs == 8.5 && rate == 0.3f);
    for (const Division d : {Division{1, 0.5f}, {1, 0.8f}, {0.5, 0.25f}, {2, 1.0f}, {2, 1.4f}})
      for (const int every : {10, 20, 40}) {
        const auto optimizer = sk::optim::chain(sk::optim::Kfac{.damping = d.damping,
                                                                .factor_every = every,
                                                                .inverse_every = every,
                                                                .factor_decay = every == 40 ? 0.8 : 0.9,
                                                                .kl_clip = 0,
                                                                .inverse = sk::optim::KfacInverse::cholesky,
                                                                .factor_bias_correction = true},
                                                momentum_sgd(d.rate));
        consider(ours,
                 "K-FAC every " + std::to_string(every) + " steps, damping " + number(d.damping) + ", rate " + number(d.rate),
                 epochs, optimizer, epochs == 6.5 && d.damping == 2 && d.rate == 1 && every == 40);
      }
  }
  const std::string images = number(static_cast<double>(set.train.size())) + " images of CIFAR-10";
  return add_times(report, "ResNet-20 on " + images, goal, ours, plain);
}
}  // namespace

int main(int argc, char** argv) {
  Report report("kfac", options(argc, argv), {"steps", "lenet", "resnet"});
  const double rate = gemm_rate(report.quick());
  report.say("a core's sgemm: " + number(1e-9 * rate) + " GFLOP/s");
  bool right = true;
  if (report.wants("steps")) {
    for (const int threads : {1, 2}) right &= steps(report, cycle, threads, rate, true);
    right &= steps(report, 1, 2, rate, false);  // kfac-pytorch's examples: factors every step, inverses every 10
  }
  if (report.wants("lenet")) right &= lenet_to_accuracy(report);
  if (report.wants("resnet")) right &= resnet_to_accuracy(report);
  return report.finish(right);
}
