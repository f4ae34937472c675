// SPDX-License-Identifier: Apache-2.0
// What a larger batch costs when the epochs stay: LeNet-5 on MNIST (or another set of its format: --data) by plain SGD, by SGD
// with a rate in proportion to the batch and warm-up (Goyal et al., arXiv:1706.02677), by LARS, LAMB and K-FAC, over several
// seeds: a table and a plot of the accuracy by the batch, without the trainings that diverged, which are counted. Before that the
// largest batch that fits into --memory, its samples among that: found from the memory plans of two small batches, compared with
// the plan of an executor of that batch and with what the process has after a step; and images a second by the batch, with the
// batch from which more of it brings less than a twentieth.
//     19_large_batch --epochs 10 --batches 128,256,512,1024,2048,4096,8192 --seeds 3 --svg large_batch --json figures.json
//     19_large_batch --method none --memory 4096
// ctest: --samples 1280 --epochs 2 --batches 64,256 --seeds 2 --memory 24 --seconds 0.01 --svg large_batch
// ctest expects: largest batch in 24 MiB.*of the best
// ctest: --samples 256 --epochs 4 --batches 16 --seeds 2 --memory 8 --seconds 0.01 --method sgd --lr 1000 --json lost.json
// ctest expects: LeNet-5 on [a-zA-Z ]+, the first 256 images, 4 epochs, sgd, batch 16, best test accuracy: .*of 2 diverged
// ctest: --method sgd --lr 0
// ctest expects: --lr is "0": a number from 1e-12 to 1000 is wanted
// ctest: --method sgd --lars-lr 2
// ctest expects: --lars-lr does nothing with --method sgd
// ctest: --method sgd --warmup 2
// ctest expects: --warmup does nothing with --method sgd
// ctest: --method linear --damping 0.2
// ctest expects: --damping does nothing with --method linear
// ctest: --method kfac --lr 0.1
// ctest expects: --lr does nothing with --method kfac
// ctest: --method lamb --momentum 0.5
// ctest expects: --momentum does nothing with --method lamb
// ctest: --method none --epochs 9
// ctest expects: --epochs does nothing with --method none
// ctest: --batches 64,64
// ctest expects: --batches has 64 twice
// ctest: --method none --svg large_batch
// ctest expects: --svg does nothing with --method none
// ctest: --svg nowhere/large_batch
// ctest expects: nowhere/large_batch.svg: --svg cannot be written there
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include <skein/optim/kfac/kfac.hpp>
#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
#include "support/table.hpp"
namespace sk = skein;
namespace nn = skein::nn;
namespace ex = experiments;
namespace optim = skein::optim;

namespace {

using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
using Model = sk::Model<LeNet, sk::Shape<28, 28, 1>>;
constexpr double mebibyte = 1024.0 * 1024.0;

struct Options {
  int epochs = 5, warmup = 1, threads = 0, seeds = 1, inverse_every = 5;
  long samples = 0, memory = 256, base_batch = 128;
  double lr = 0.01, momentum = 0.9, lars_lr = 1, lamb_lr = 0.01, kfac_lr = 0.03, damping = 0.1, seconds = 0.2;
  std::vector<int> batches{128, 512, 2048, 8192};
  std::string method = "all", data, svg, json;

  void flags(sk::Flags& f) {
    f.about("Accuracy by the batch at fixed epochs: plain SGD, linear scaling, LARS, LAMB, K-FAC; the largest batch in memory");
    f("method", method, "sgd, linear, lars, lamb, kfac, all in turns, or none")
        .one_of({"sgd", "linear", "lars", "lamb", "kfac", "all", "none"});
    f("batches", batches, "samples of a step, in turns").within(1, 1'000'000);
    f("epochs", epochs, "of each training").within(1, 100'000);
    f("warmup", warmup, "epochs in which the rate rises, of all but plain SGD").within(0, 1000);
    f("seeds", seeds, "trainings of each kind").within(1, 1000);
    f("samples", samples, "take only so many; 0: all").within(0, 1'000'000);
    f("base-batch", base_batch, "the batch that the rates are for").within(1, 1'000'000);
    f("lr", lr, "rate of SGD").within(1e-12, 1000);
    f("momentum", momentum, "of SGD, LARS and K-FAC").within(0, 0.999);
    f("lars-lr", lars_lr, "rate of LARS, whose trust is 0.01; it grows with the root of the batch").within(1e-12, 1000);
    f("lamb-lr", lamb_lr, "rate of LAMB, likewise").within(1e-12, 1000);
    f("kfac-lr", kfac_lr, "rate of K-FAC, which grows with the batch").within(1e-12, 1000);
    f("damping", damping, "of K-FAC").within(1e-12, 1e3);
    f("inverse-every", inverse_every, "steps between K-FAC's inverses").within(1, 1'000'000);
    f("memory", memory, "MiB into which the largest batch must fit").within(8, 1'000'000);
    f("seconds", seconds, "of steps for each rate of images").within(0, 3600);
    f("threads", threads, "workers; 0: the cores").within(0, 1024);
    f("data", data, "folder of MNIST, or of a set in its files' format");
    f("svg", svg, "draws accuracies in NAME.svg");
    f("json", json, "adds the figures to this file");
  }
};

// ---- accuracy by the batch

/// The best test accuracies of one method at one batch, one for each seed; not a number: it diverged.
struct Outcome {
  std::string method;
  int batch = 0;
  std::vector<double> accuracies;
};

template <class Optimizer> double train(const Options& o, const sk::data::SourcedTrainTest& set, const Optimizer& optimizer,
                                        int batch, int warmup, int seed) {
  Model model{sk::Seed{static_cast<std::uint64_t>(seed)}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer};
  sk::FitOptions fit{.epochs = o.epochs,
                     .batch = batch,
                     .validate = set.test,
                     .seed = sk::Seed{static_cast<std::uint64_t>(seed)},
                     .progress = false,
                     .threads = o.threads};
  if (ex::warms_up(warmup, o.epochs)) fit.schedule = optim::warmup(optim::epochs(warmup)) * optim::cosine();
  else fit.schedule = optim::cosine();
  try {
    return trainer.fit(set.train, fit).best(sk::train::highest("accuracy")).validation.accuracy;
  } catch (const sk::NotFiniteError&) { return NAN; }
}

class Study {
 public:
  /// `first`: so many samples of the set's source are in it; 0: all.
  Study(const Options& o, const sk::data::SourcedTrainTest& set, long first)
      : o_(&o), set_(&set),
        job_("LeNet-5 on " + (o.data.empty() ? ex::data_in_words(set.source, first) : set.source + ex::first_images(first)) +
             ", " + std::to_string(o.epochs) + " epochs") {}  // of a folder that was named: it may have another set
  void run() {
    for (const int batch : o_->batches) {
      const double scale = static_cast<double>(batch) / static_cast<double>(o_->base_batch);
      add("sgd", batch, 0, sgd(o_->lr));
      add("linear", batch, o_->warmup, sgd(o_->lr * scale));
      add("lars", batch, o_->warmup, optim::chain(optim::Lars{.trust = 1e-2f}, sgd(o_->lars_lr * std::sqrt(scale))));
      add("lamb", batch, o_->warmup,
          optim::chain(optim::Lamb{}, optim::Sgd{.lr = static_cast<float>(o_->lamb_lr * std::sqrt(scale))}));
      add("kfac", batch, o_->warmup,
          optim::chain(
              optim::Kfac{.damping = o_->damping, .inverse_every = o_->inverse_every, .inverse = optim::KfacInverse::cholesky},
              sgd(o_->kfac_lr * scale)));
    }
  }
  void report(ex::Results& results) const {
    std::vector<std::string> heads{"batch", "steps"};
    sk::draw::Plot plot{
        .title = job_ + ", whatever the batch", .x_label = "samples of a step", .y_label = "best test accuracy", .log_x = true};
    for (const Outcome& one : outcomes_) {
      if (one.batch == outcomes_.front().batch) heads.push_back(one.method), plot.series.push_back({.name = one.method});
      const auto series =
          std::find_if(plot.series.begin(), plot.series.end(), [&](const auto& s) { return s.name == one.method; });
      ex::Line line{.metric = job_ + ", " + one.method + ", batch " + std::to_string(one.batch) + ", best test accuracy",
                    .unit = ""};
      if (const auto trained = ex::numbers_of(one.accuracies); !trained.empty()) {
        const ex::MeanAndDeviation m = ex::mean_and_deviation(trained);
        series->x.push_back(one.batch), series->y.push_back(m.mean), series->error.push_back(m.deviation);
        line.ours = m.mean;
      }
      if (const std::string lost = ex::diverged(one.accuracies); !lost.empty()) line.add(lost);
      results.add(line);
    }
    ex::Table table{heads};
    for (const int batch : o_->batches) {
      std::vector<std::string> cells{std::to_string(batch),
                                     std::to_string(o_->epochs * ((set_->train.size() + batch - 1) / batch))};
      for (const Outcome& one : outcomes_)
        if (one.batch == batch) cells.push_back(ex::cell_of_trained(one.accuracies));
      table.row(cells);
    }
    table.print();
    if (!o_->svg.empty()) plot.write(o_->svg + ".svg"), std::printf("drawn: %s.svg\n", o_->svg.c_str());
  }
  bool any() const { return !outcomes_.empty(); }

 private:
  optim::Sgd sgd(double rate) const { return {.lr = static_cast<float>(rate), .momentum = static_cast<float>(o_->momentum)}; }
  template <class Optimizer> void add(const std::string& method, int batch, int warmup, const Optimizer& optimizer) {
    if (o_->method != method && o_->method != "all") return;
    Outcome one{method, batch, {}};
    for (int seed = 1; seed <= o_->seeds; ++seed) one.accuracies.push_back(train(*o_, *set_, optimizer, batch, warmup, seed));
    outcomes_.push_back(one);
  }

  const Options* o_;
  const sk::data::SourcedTrainTest* set_;
  std::string job_;  // the network, the data and the epochs, for titles and metrics
  std::vector<Outcome> outcomes_;
};

// ---- the largest batch in memory, and what a larger one brings

/// A training of a batch of noise.
class Steps {
 public:
  Steps(const Options& o, long batch)
      : x_(static_cast<std::size_t>(batch * 784)), labels_(static_cast<std::size_t>(batch)),
        step_(model_, nn::CrossEntropy{}, optim::Sgd{.lr = 1e-4f, .momentum = 0.9}, sk::parallel::SingleProcess{}) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = sk::random_uniform(5, 1, i) - 0.5f;
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::int32_t>(i % 10);
    step_.reserve({.capacity = batch, .threads = o.threads});
  }
  void step() { step_.step(sk::BatchView<float>{x_.data(), 784, labels_.data(), nullptr, 0, static_cast<long>(labels_.size())}); }
  /// Bytes by the plan, of the optimizer's one array, and of the samples.
  double bytes() {
    const sk::MemoryPlan m = step_.executor().memory_plan();
    return static_cast<double>(m.parameters * 2 + m.gradients + m.buffers + m.packed_weights + m.activations + m.workspace) +
           static_cast<double>(x_.size() * sizeof(float) + labels_.size() * sizeof(std::int32_t));
  }
  double images_a_second(double seconds) {
    step();  // the first touches the memory
    long n = 0;
    const auto begin = std::chrono::steady_clock::now();
    double passed = 0;
    for (; n == 0 || passed < seconds; ++n) {
      step();
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return static_cast<double>(n) * static_cast<double>(labels_.size()) / passed;
  }

 private:
  Model model_{sk::Seed{1}};
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
  sk::train::TrainStep<Model, nn::CrossEntropy, optim::Sgd, sk::parallel::SingleProcess> step_;
};

/// Bytes of this process that are in memory.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// A plan is a constant and so much a sample: two of them say what any batch takes.
long find_largest_batch(const Options& o) {
  const double small = Steps(o, 64).bytes(), each = (Steps(o, 128).bytes() - small) / 64;
  return static_cast<long>((static_cast<double>(o.memory) * mebibyte - small) / each) + 64;
}

/// MiB of a training of this batch.
struct Memory {
  double planned = 0;
  double resident = 0;  // that the process has more of after a step
};
/// It is gone when this returns: two of the largest batch would not fit.
Memory memory_of(const Options& o, long batch) {
  const double before = resident_bytes();
  Steps steps(o, batch);
  steps.step();
  return {steps.bytes() / mebibyte, (resident_bytes() - before) / mebibyte};
}

/// Throws FlagError: else the system would end the program, or the allocator without a sentence.
[[noreturn]] void refuse_memory(const Options& o) {
  throw sk::FlagError("--memory " + std::to_string(o.memory) + ": this machine does not have so many MiB: give fewer");
}

/// Images a second of batches up to the largest.
void study_rates(const Options& o, long largest, ex::Results& results) {
  std::vector<long> batches;
  std::vector<double> rates;
  for (long batch = 16; batch <= largest; batch *= 2)
    batches.push_back(batch), rates.push_back(Steps(o, batch).images_a_second(o.seconds));
  if (rates.empty()) return;
  const double best = *std::max_element(rates.begin(), rates.end());
  ex::Table table{{"batch", "images a second", "of the best"}};
  for (std::size_t i = 0; i < rates.size(); ++i)
    table.row({std::to_string(batches[i]), ex::cell(rates[i]), ex::cell(rates[i] / best)});
  table.print();
  const std::size_t enough = ex::lasts_from(rates, 0.95);
  if (enough == rates.size()) {
    std::printf("images a second are not saturated: those of the largest batch are more than a twentieth below the best\n");
    return;
  }
  std::printf("images a second are within a twentieth of the best from a batch of %ld on\n", batches[enough]);
  results.add({.metric = "batch from which throughput is saturated", .ours = static_cast<double>(batches[enough]), .unit = ""});
}

void study_memory(const Options& o, ex::Results& results) {
  const double of_machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (static_cast<double>(o.memory) * mebibyte > of_machine) refuse_memory(o);
  const long largest = find_largest_batch(o);
  if (largest < 1) throw sk::ArgumentError("--memory " + std::to_string(o.memory) + ": not one sample fits into so many MiB");
  memory_of(o, 1);  // what any training brings into memory: code, threads
  const Memory found = memory_of(o, largest);
  std::printf(
      "largest batch in %ld MiB: %ld (its plan, with the samples: %.2f MiB; of one more: %.2f; in memory after a step: %.2f)\n",
      o.memory, largest, found.planned, Steps(o, largest + 1).bytes() / mebibyte, found.resident);
  if (found.planned > static_cast<double>(o.memory))
    throw sk::Error("19_large_batch: the plan of the batch that was found is larger");
  if (found.resident > static_cast<double>(o.memory))
    std::printf("in memory that is %.2f MiB more than --memory: what the allocator and threads add is not in the plan\n",
                found.resident - static_cast<double>(o.memory));
  results.add(
      {.metric = "largest batch in " + std::to_string(o.memory) + " MiB", .ours = static_cast<double>(largest), .unit = ""});

  study_rates(o, largest, results);
}

/// Throws FlagError for what the methods that are chosen do not look at.
void check_unused_flags(const Options& o) {
  const Options usual;
  const auto of = [&](const std::vector<std::string>& methods, const char* flag, bool given) {
    const bool used = o.method == "all" || std::find(methods.begin(), methods.end(), o.method) != methods.end();
    ex::check_unused(flag, given && !used, "with --method " + o.method);
  };
  of({"sgd", "linear"}, "lr", o.lr != usual.lr);
  of({"sgd", "linear", "lars", "kfac"}, "momentum", o.momentum != usual.momentum);
  of({"lars"}, "lars-lr", o.lars_lr != usual.lars_lr);
  of({"lamb"}, "lamb-lr", o.lamb_lr != usual.lamb_lr);
  of({"kfac"}, "kfac-lr", o.kfac_lr != usual.kfac_lr);
  of({"kfac"}, "damping", o.damping != usual.damping);
  of({"kfac"}, "inverse-every", o.inverse_every != usual.inverse_every);
  of({"linear", "lars", "lamb", "kfac"}, "warmup", o.warmup != usual.warmup);
  of({"linear", "lars", "lamb", "kfac"}, "base-batch", o.base_batch != usual.base_batch);
  if (o.method != "none") return;
  of({}, "epochs", o.epochs != usual.epochs);
  of({}, "seeds", o.seeds != usual.seeds);
  of({}, "batches", o.batches != usual.batches);
  of({}, "samples", o.samples != usual.samples);
  of({}, "svg", !o.svg.empty());
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    ex::check_distinct("batches", o.batches);
    check_unused_flags(o);
    ex::check_outputs({.json = o.json, .svg = o.svg});
    auto set = sk::data::mnist_or_synthetic(o.data);
    const bool smaller = ex::take_samples(set, o.samples);
    std::printf("LeNet-5 on %s: %ld images, %d epochs, %d seeds\n", set.source.c_str(), static_cast<long>(set.train.size()),
                o.epochs, o.seeds);
    if (o.method != "none")
      for (const int batch : o.batches)
        ex::check_at_most("batches", batch, set.train.size(), "samples of an epoch", ex::more_samples(smaller));
    if (o.method != "none" && o.method != "sgd") std::printf("%s", ex::left_out_warmup(o.warmup, o.epochs).c_str());
    ex::Results results("large_batch", {.json = o.json});
    try {
      study_memory(o, results);        // first: what trainings give back stays in the process
    } catch (const std::bad_alloc&) {  // also where a limit is below the machine's memory
      refuse_memory(o);
    }
    Study study(o, set, smaller ? o.samples : 0);
    study.run();
    if (study.any()) study.report(results);
    return results.finish();
  });
}
