// SPDX-License-Identifier: Apache-2.0
// What does `.checkpoint` cost a training: fits with it and without it in turns.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adam.hpp>
#include <skein/train/trainer.hpp>

#include "report.hpp"
#include "slices.hpp"

namespace bench {

/// Adam on 784-512-512-10, batch 128: a commit has 8 MB. It is written to the disk that the temporary folder is on.
inline void cost_of_saving(Report& report) {
  namespace sk = skein;
  using Net = sk::nn::Sequential<sk::nn::Linear<512>, sk::nn::Relu, sk::nn::Linear<512>, sk::nn::Relu, sk::nn::Linear<10>>;
  const std::string folder = (std::filesystem::temp_directory_path() / ("skein-saving-" + std::to_string(::getpid()))).string();
  const std::vector<float> x(12800 * 784, 0.5f);
  std::vector<std::int32_t> labels(12800);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {784}}, labels);
  const int epochs = report.quick() ? 5 : 11;  // of 100 steps; the commit at the end is waited for in any case
  const auto fit = [&](std::int64_t every, bool async) {
    sk::Model<Net, sk::Shape<784>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 1e-4f}};
    sk::FitOptions o{.epochs = epochs, .batch = 128, .progress = false, .threads = 1};
    if (every > 0) o.checkpoint = {.folder = folder, .every = every, .keep = 2, .async = async};
    const Slice time = timed(1, [&] { trainer.fit(data, o); });
    std::filesystem::remove_all(folder);
    return time;
  };
  struct Case {
    std::int64_t every;
    bool async;
    Goal must;
  };
  const Case cases[] = {
      {500, false, {.bound = 1.035}}, {500, true, {.bound = 1.035}}, {200, true, {}}, {50, false, {}}, {50, true, {}}};
  (void)fit(500, false);
  const double steps = 100 * epochs;
  for (const Case& c : cases) {
    std::vector<double> walls, cpus, with[2], without[2];
    for (int round = 0; round < (report.quick() ? 3 : 12); ++round) {
      const Slice a = fit(c.every, c.async), x0 = fit(0, false), x1 = fit(0, false), d = fit(c.every, c.async);
      walls.push_back((a.wall + d.wall) / (x0.wall + x1.wall));
      cpus.push_back((a.cpu + d.cpu) / (x0.cpu + x1.cpu));
      with[0].push_back((a.wall + d.wall) / 2), with[1].push_back((a.cpu + d.cpu) / 2);
      without[0].push_back((x0.wall + x1.wall) / 2), without[1].push_back((x0.cpu + x1.cpu) / 2);
    }
    const std::string name = "a step with .checkpoint.every = " + std::to_string(c.every) + (c.async ? ", .async" : "");
    for (const int k : {0, 1}) {
      const std::vector<double>& ratios = k == 0 ? walls : cpus;
      report.add({.metric = name + (k == 0 ? "" : ": processor time"),
                  .ours = 1e3 * median(with[k]) / steps,
                  .peer = 1e3 * median(without[k]) / steps,
                  .peer_name = "without",
                  .ratio = bootstrap(ratios),
                  .must = c.must,
                  .note = "MLP of 670,000 parameters, Adam"});
    }
  }
}

}  // namespace bench
