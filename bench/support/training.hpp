// SPDX-License-Identifier: Apache-2.0
// A training step as a candidate: one network, a batch that stays, the library's own TrainStep. The same weights and samples go
// to the peer as raw files; a time is accepted only after the losses of the first steps agree to 1e-4.
#pragma once
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "against.hpp"
#include "networks.hpp"
#include "peer.hpp"
#include "report.hpp"
#include "twice.hpp"

namespace bench {

/// A folder for what goes to the peer, gone at the end.
class Exchange {
 public:
  Exchange() {
    std::string name = (std::filesystem::temp_directory_path() / "skein-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Exchange(const Exchange&) = delete;
  ~Exchange() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }
  template <class T> void write(const char* name, const T* values, std::size_t n) const {
    std::ofstream(file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(n * sizeof(T)));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The parameters of a model without the gaps, in the order of the table.
template <class Model> std::vector<float> logical(const Model& model) {
  std::vector<float> v;
  for (const auto& e : Model::program.parameters()) {
    const long width = e.extents.last(), pitch = sk::row_pitch(width);
    for (long r = 0; r < e.extents.count() / width; ++r) {
      const float* row = model.parameters().data + e.offset + r * pitch;
      v.insert(v.end(), row, row + width);
    }
  }
  return v;
}

/// Samples that look like data: digits where the shape is theirs, else waves and noise.
template <class Network, class Loss> struct Samples {
  using Model = ModelOf<Network>;
  static constexpr long values = Model::input::count, pitch = sk::sample_pitch(Model::input::extents),
                        outputs = Model::output_extents.count();
  static constexpr bool labelled = Loss::target == nn::TargetKind::label;
  long count;
  std::vector<float> x, targets;  // dense
  std::vector<std::int32_t> labels;
  sk::Arena<float> staged, staged_targets;

  explicit Samples(long n)
      : count(n), x(static_cast<std::size_t>(n * values)), targets(labelled ? 0 : static_cast<std::size_t>(n * outputs)),
        labels(labelled ? static_cast<std::size_t>(n) : 0), staged(static_cast<std::size_t>(n * pitch)),
        staged_targets(static_cast<std::size_t>(n * sk::row_pitch(outputs))) {
    if (values == 784) {
      const auto digits = sk::data::synthetic_digits(n, sk::Seed{3}).normalize(0.1307, 0.3081);
      std::vector<std::int64_t> all(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
      digits.gather(all, x.data(), values);
      if (labelled) digits.labels(all, labels.data());
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 2 * sk::random_uniform(5, 1, i) - 1;
      for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(sk::random_uniform(5, 2, i) * static_cast<float>(outputs)) %
                    static_cast<std::int32_t>(outputs);
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
      targets[i] = std::sin(3 * x[i / static_cast<std::size_t>(outputs) * static_cast<std::size_t>(values)]);
    for (long i = 0; i < n; ++i) {
      std::copy_n(x.data() + i * values, values, staged.data() + i * pitch);
      if (!labelled) std::copy_n(targets.data() + i * outputs, outputs, staged_targets.data() + i * sk::row_pitch(outputs));
    }
  }
  /// Samples [lo, hi) of `global` that a step takes over all ranks.
  sk::data::Batch<float> batch(long lo, long hi, long global) const {
    sk::data::Batch<float> b;
    b.x = staged.data() + lo * pitch;
    b.pitch = pitch;
    b.sample = Model::input::extents;
    if (labelled) b.labels = labels.data() + lo;
    else
      b.targets = staged_targets.data() + lo * sk::row_pitch(outputs), b.target_pitch = sk::row_pitch(outputs),
      b.target_length = static_cast<int>(outputs);
    b.count = hi - lo;
    b.global_count = global;
    b.first = lo;
    return b;
  }
};

/// One rank's training on its part of the samples. While it is timed, the rate is a thousandth: weights stay as they are.
template <class Network, class Loss, class Policy = sk::parallel::SingleProcess, class Optimizer = sk::optim::Sgd>
class Training {
 public:
  using Model = ModelOf<Network>;
  using TrainStep = sk::train::TrainStep<Model, Loss, Optimizer, Policy>;

  Training(const Samples<Network, Loss>& samples, Optimizer optimizer, int threads, Policy policy = {}, int rank = 0,
           int ranks = 1)
      : optimizer_(optimizer), threads_(threads), policy_(std::move(policy)),
        batch_(samples.batch(samples.count * rank / ranks, samples.count * (rank + 1) / ranks, samples.count)) {
    reset();
  }
  void reset() {
    train_step_.reset();
    model_ = std::make_unique<Model>(sk::Seed{7});
    train_step_ = std::make_unique<TrainStep>(*model_, Loss{}, optimizer_, policy_);
    train_step_->reserve({.capacity = batch_.count, .threads = threads_});
    train_step_->executor().prepare(batch_.count);
  }
  double step(double factor = 1e-3) { return train_step_->step(batch_, {.lr_factor = factor}).mean(); }
  Slice run(long n) {
    step();
    return timed(n, [&] { step(); });
  }
  void age(long n) {
    for (long i = 0; i < n; ++i) step(1);
  }
  std::vector<double> losses(int k) {
    reset();
    std::vector<double> v;
    for (int i = 0; i < k; ++i) v.push_back(step(1));
    return v;
  }
  const Model& model() const { return *model_; }

 private:
  Optimizer optimizer_;
  int threads_;
  Policy policy_;
  sk::data::Batch<float> batch_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<TrainStep> train_step_;
};

/// What bench/peer/training.py is told; the files lie in the exchange.
template <class Network, class Loss> std::vector<std::string> hand_over(const Exchange& e, const Samples<Network, Loss>& s,
                                                                        const ModelOf<Network>& model,
                                                                        const sk::optim::Sgd& sgd) {
  const std::vector<float> weights = logical(model);
  e.write("weights", weights.data(), weights.size());
  e.write("x", s.x.data(), s.x.size());
  if (s.labelled) e.write("labels", s.labels.data(), s.labels.size());
  else e.write("targets", s.targets.data(), s.targets.size());
  return {"--folder",   e.path(),
          "--network",  Network::words,
          "--batch",    std::to_string(s.count),
          "--lr",       std::to_string(sgd.lr),
          "--momentum", std::to_string(sgd.momentum)};
}

/// Empty where both curves are the same to `tolerance` of their values.
inline std::string difference(const std::vector<double>& ours, const std::vector<double>& theirs, double tolerance = 1e-4) {
  char text[96];
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (i >= theirs.size() || !(std::fabs(ours[i] - theirs[i]) <= tolerance * std::fabs(theirs[i]))) {
      std::snprintf(text, sizeof text, "losses differ in step %zu: %.7g, the peer has %.7g", i + 1, ours[i],
                    i < theirs.size() ? theirs[i] : NAN);
      return text;
    }
  return {};
}

/// The same on the host, where a peer is a process of its own.
inline bool against(Line& l, const Candidate& ours, Peer* peer, const std::string& wrong, bool quick) {
  return against(l, ours, peer, wrong, {between(quick), within(quick)});
}

/// Steps at the full rate after which the momenta of weights without a gradient are denormal where those are kept: 0.9^1000 is
/// 2e-46.
constexpr long aged_steps = 1000;

/// Two threads against one, and what two copies at the same time reach.
template <class Network, class Loss>
void against_one(Line& l, const Samples<Network, Loss>& samples, sk::optim::Sgd sgd, const Candidate& ours, bool quick) {
  using One = Training<Network, Loss>;
  TwoCopies<One> copies([&] { return std::make_unique<One>(samples, sgd, 1); });
  l.speedup = compare(copies.one(), ours, within(quick)).ratio.median;
  l.twice = 2 * compare(copies.one(), copies.both(), within(quick)).ratio.median;
}

/// A step of a network on so many threads against the peer's best: of a fresh state, which the goals are for, and of one that is
/// `age` steps old (0: not asked for).
template <class Network, class Loss> bool measure_step(Report& report, Line l, long batch, sk::optim::Sgd sgd, double rate,
                                                       bool with_peer = true, long age = aged_steps) {
  const Samples<Network, Loss> samples(batch);
  Training<Network, Loss> ours(samples, sgd, l.threads);
  const Exchange exchange;
  const bool images = ModelOf<Network>::input::rank == 3;
  std::unique_ptr<Peer> peer;
  if (with_peer)
    peer = best_peer("training.py", hand_over(exchange, samples, ours.model(), sgd), variants(l.threads, images, report.quick()),
                     report.quick());
  const std::string wrong = peer ? difference(ours.losses(20), peer->losses(20)) : "";
  l.floor = 1e3 * step_flops<Network>(batch) / (rate * l.threads);
  const Candidate run = [&](long n) { return ours.run(n); };
  const bool right = against(l, run, peer.get(), wrong, report.quick());
  if (l.threads == 2) against_one(l, samples, sgd, run, report.quick());
  report.add(l);
  if (age == 0) return right;
  ours.age(age);
  if (peer) peer->age(age);
  Line old{.metric = l.metric + ", " + std::to_string(age) + " steps old", .floor = l.floor, .threads = l.threads};
  const bool still_right = against(old, run, peer.get(), "", report.quick());
  report.add(old);
  return right && still_right;
}

}  // namespace bench
