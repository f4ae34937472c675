// SPDX-License-Identifier: Apache-2.0
// A bit of a weight that flips on one rank of several that train: what fit says of it.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/core/random.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace bench {

/// Which bit, of which value of which parameter, on which rank, after which step; all drawn by the number of the trial.
struct FlippedBit {
  using Net = skein::nn::Sequential<skein::nn::Conv2d<4, skein::Kernel<3>>, skein::nn::Relu, skein::nn::Flatten,
                                    skein::nn::Linear<9>, skein::nn::Relu, skein::nn::Linear<3>>;
  using Model = skein::Model<Net, skein::Shape<6, 6, 1>>;
  static constexpr int steps = 6;

  explicit FlippedBit(std::uint64_t trial, int ranks_) : ranks(ranks_) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) { return skein::random_below(23, trial, draw++, n); };
    const auto entries = Model::program.parameters();
    const auto& entry = entries[below(entries.size())];
    parameter = std::string(std::string_view(skein::plan::name_of(Model::program.parts(), entry)));
    at = static_cast<std::size_t>(entry.offset) + below(static_cast<std::uint64_t>(entry.stored));
    bit = static_cast<int>(below(32));
    rank = static_cast<int>(below(static_cast<std::uint64_t>(ranks)));
    step = 1 + static_cast<std::int64_t>(below(steps));
  }
  int ranks, bit = 0, rank = 0;
  std::string parameter;
  std::size_t at = 0;
  std::int64_t step = 0;

  /// What fit throws on rank 0; "" where it ends well. `flips`: false for the control without a flip; `every`: steps between two
  /// comparisons.
  std::string said(bool flips = true, std::int64_t every = 1) const {
    std::string text;
    skein::spawn(ranks, [&](skein::ThreadComm& world) {
      std::vector<float> x(24 * 36);
      std::vector<std::int32_t> labels(24);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = skein::random_uniform(3, 0, i) - 0.5f;
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
      Model model{skein::Seed{5}};
      skein::Trainer trainer{model, skein::nn::CrossEntropy{}, skein::optim::Adam{.lr = 0.01f},
                             skein::parallel::DataParallel{world}};
      skein::FitOptions o{.epochs = 3, .batch = 12, .progress = false, .threads = 1, .check = {.replicas_every = every}};
      if (flips && world.rank() == rank) o.callbacks.add(Flip{&model, at, bit, step});
      try {
        trainer.fit(skein::data::from_tensors(x, skein::Extents{3, {6, 6, 1}}, labels), o);
      } catch (const skein::CommError& e) {
        if (world.rank() == 0) text = e.what();
      }
    });
    return text;
  }
  /// The sentence names the step, the parameter and the rank.
  bool named_by(const std::string& text) const {
    return text.find("the ranks have other weights after step " + std::to_string(step) + ": ") == 0 &&
           text.find(parameter + " is of hash ") != text.npos &&
           text.find("most ranks have the same, and rank " + std::to_string(rank) + " differs from them") != text.npos;
  }

 private:
  struct Flip {
    Model* model;
    std::size_t at;
    int bit;
    std::int64_t step;
    void on_update(std::int64_t now) const {
      if (now != step) return;
      const auto lease = model->modify();
      auto& value = *(lease.data() + at);
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      bits ^= std::uint32_t{1} << bit;
      std::memcpy(&value, &bits, sizeof bits);
    }
  };
};

}  // namespace bench
