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
  constexpr int epochs = 5;  // of 100 steps
  const auto fit = [&](std::int64_t every) {
    sk::Model<Net, sk::Shape<784>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 1e-4f}};
    sk::FitOptions o{.epochs = epochs, .batch = 128, .progress = false, .threads = 1};
    if (every > 0) o.checkpoint = {.folder = folder, .every = every, .keep = 2};
    const double seconds = timed(1, [&] { trainer.fit(data, o); }).wall;
    std::filesystem::remove_all(folder);
    return seconds;
  };
  constexpr std::int64_t intervals[] = {500, 50};
  (void)fit(500);
  for (const std::int64_t every : intervals) {
    std::vector<double> ratios, with, without;
    for (int round = 0; round < (report.quick() ? 3 : 12); ++round) {
      const double a = fit(every), b = fit(0), c = fit(0), d = fit(every);
      ratios.push_back((a + d) / (b + c));
      with.push_back((a + d) / 2);
      without.push_back((b + c) / 2);
    }
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    constexpr double steps = 100 * epochs;
    report.add({.metric = "a step with .checkpoint.every = " + std::to_string(every),
                .ours = 1e3 * median(with) / steps,
                .peer = 1e3 * median(without) / steps,
                .peer_name = "without",
                .ratio = Interval{median(ratios), *low, *high},
                .must = every == 500 ? Goal{.bound = 1.035} : Goal{},
                .note = "MLP of 670,000 parameters, Adam; all rounds lie in the interval"});
  }
}

}  // namespace bench
