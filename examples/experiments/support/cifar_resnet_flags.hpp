// SPDX-License-Identifier: Apache-2.0
// The flags of 17_cifar_resnet, and which of them make a run's time another one: what --record compares must have done the same
// work.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <skein/core/flags.hpp>

#include "flag_checks.hpp"
#include "recorded_runs.hpp"

namespace experiments {

struct CifarResNetFlags {
  int depth = 20, epochs = 10, warmup = 2, accumulate = 1, threads = 0, inverse_every = 10, factor_every = 1, inverse_rank = 0;
  long batch = 128, global_batch = 0, samples = 0;
  double momentum = 0.9, weight_decay = 5e-4, target = 0.6, label_smoothing = 0;
  double damping = 0.003, kl_clip = 0.001, factor_decay = 0.95;
  bool augment = true, factor_bias_correction = false;
  std::vector<double> lr{0};
  std::vector<int> decay{35, 75, 90};
  std::string optimizer = "sgd", inverse = "eigen", checkpoint, data, record, svg, json;
  long seed = 1;

  void flags(skein::Flags& f) {
    f.about("A residual network on CIFAR-10 over ranks: SGD, LARS, LAMB or K-FAC");
    f("depth", depth, "layers of the network: 20, 32 or 56").within(20, 56);
    f("optimizer", optimizer, "sgd, lars, lamb, kfac, or all in turns").one_of({"sgd", "lars", "lamb", "kfac", "all"});
    f("epochs", epochs, "how many").within(1, 100'000);
    f("batch", batch, "samples of a rank in a batch").within(1, 1'000'000);
    f("global-batch", global_batch, "samples of all ranks in a batch, which they share; 0: those of each")
        .within(0, 1'000'000'000);
    f("accumulate", accumulate, "batches of a step").within(1, 10'000);
    f("samples", samples, "take only so many; 0: all").within(0, 1'000'000);
    f("lr", lr, "rate at 128 samples a step, to which it is proportional; 0: the optimizer's usual one; of all four by 1,2,3,4")
        .within(0, 1000);
    f("momentum", momentum, "of the steps").within(0, 0.999);
    f("weight-decay", weight_decay, "share of the weights in the gradient").within(0, 1);
    f("label-smoothing", label_smoothing, "share of a label that all classes get").within(0, 0.999);
    f("warmup", warmup, "epochs in which the rate rises").within(0, 1000);
    f("decay", decay, "percent of the epochs after which the rate is a tenth").within(1, 100);
    f("damping", damping, "of K-FAC").within(1e-12, 1e3);
    f("kl-clip", kl_clip, "limit of K-FAC's step; 0: none").within(0, 1e9);
    f("factor-decay", factor_decay, "share of a factor that an update keeps").within(0, 0.9999);
    f("factor-bias-correction", factor_bias_correction, "the factors' means begin as the first batch's, not as the identity");
    f("inverse", inverse, "of K-FAC's factors").one_of({"eigen", "cholesky"});
    f("inverse-rank", inverse_rank, "eigenvectors that stand for a large factor, with --inverse cholesky; 0: whole inverses")
        .within(0, 100'000);
    f("factor-every", factor_every, "steps between K-FAC's factors").within(1, 1'000'000);
    f("inverse-every", inverse_every, "steps between its inverses").within(1, 1'000'000);
    f("augment", augment, "crops and flips");
    f("target", target, "accuracy whose time is told").within(0, 1);
    f("seed", seed, "of weights, order and crops").within(1, 1'000'000'000);
    f("threads", threads, "workers of a rank; 0: its cores").within(0, 1024);
    f("checkpoint", checkpoint, "folder of commits, one of each optimizer in it; a training that is there goes on");
    f("data", data, "folder of CIFAR-10");
    f("record", record, "adds the time to this file, reads there that of one rank with the same batch, or global batch");
    f("svg", svg, "draws accuracies in NAME.svg, with --record speed-ups in NAME_speed_up.svg");
    f("json", json, "adds the figures to this file");
  }
};

/// The optimizers of --optimizer all, in the order of their turns and of their rates in --lr.
inline const std::vector<std::string>& all_optimizers() {
  static const std::vector<std::string> names{"sgd", "lars", "lamb", "kfac"};
  return names;
}

/// The rate of an optimizer in --lr, or its usual one.
inline double rate_of(const CifarResNetFlags& o, const std::string& optimizer, double usual) {
  const auto& names = all_optimizers();
  const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), optimizer) - names.begin());
  const double given = o.lr.size() == 1 ? o.lr.front() : o.lr.at(at);
  return given > 0 ? given : usual;
}

/// Throws FlagError for flags that do nothing beside others.
inline void check_unused_flags(const CifarResNetFlags& o) {
  const CifarResNetFlags usual;
  const auto of_kfac = [&](const char* flag, bool given) {
    check_unused(flag, given && o.optimizer != "kfac" && o.optimizer != "all", "with --optimizer " + o.optimizer);
  };
  of_kfac("damping", o.damping != usual.damping);
  of_kfac("kl-clip", o.kl_clip != usual.kl_clip);
  of_kfac("factor-decay", o.factor_decay != usual.factor_decay);
  of_kfac("factor-bias-correction", o.factor_bias_correction != usual.factor_bias_correction);
  of_kfac("inverse", o.inverse != usual.inverse);
  of_kfac("inverse-rank", o.inverse_rank != usual.inverse_rank);
  of_kfac("factor-every", o.factor_every != usual.factor_every);
  of_kfac("inverse-every", o.inverse_every != usual.inverse_every);
  check_unused("momentum", o.momentum != usual.momentum && o.optimizer == "lamb", "with --optimizer lamb");
  check_unused("batch", o.global_batch > 0 && o.batch != usual.batch, "beside --global-batch");
}

/// Throws FlagError, before ranks are started and data are read, for flags that no training can be made of. `all_depths`: the
/// program has been compiled for all of them.
inline void check_flags(const CifarResNetFlags& o, bool all_depths) {
  check_unused_flags(o);
  const std::string depth = "--depth " + std::to_string(o.depth);
  if (o.depth != 20 && o.depth != 32 && o.depth != 56) throw skein::FlagError(depth + ": it is 20, 32 or 56");
  if (o.depth != 20 && !all_depths)
    throw skein::FlagError(depth +
                           ": this program was compiled with ResNet-20 alone; configure with -DSKEIN_TESTS=OFF for 32 and "
                           "56");
  if (o.lr.size() != 1 && (o.optimizer != "all" || o.lr.size() != all_optimizers().size()))
    throw skein::FlagError("--lr has " + std::to_string(o.lr.size()) +
                           " rates: give one, or with --optimizer all four, of sgd, lars, lamb and kfac");
  if (o.decay.size() > 8)
    throw skein::FlagError("--decay has " + std::to_string(o.decay.size()) + " places: give at most 8 of them");
  if (o.inverse_rank > 0 && o.inverse != "cholesky")
    throw skein::FlagError("--inverse-rank " + std::to_string(o.inverse_rank) + " goes with --inverse cholesky: give that too");
}

/// The network and the data: every title, metric and recorded run names both, so that a subset's figures are seen to be such.
inline std::string job(const CifarResNetFlags& o, const std::string& source) {
  const std::string data = source.substr(0, source.find(" from "));
  return "ResNet-" + std::to_string(o.depth) + " on " + data + first_images(o.samples);
}

/// What a run by one optimizer on so many images is recorded as, at its .batch: all that changes its work. Rates, their schedule,
/// damping, what is kept of factors, and the seed do not.
inline std::string recorded_settings(const CifarResNetFlags& o, const std::string& source, long images,
                                     const std::string& optimizer) {
  std::string text = job(o, source) + " " + optimizer + " " + std::to_string(o.epochs) + " epochs of " + std::to_string(images) +
                     " by " + std::to_string(o.batch) + " x" + std::to_string(o.accumulate) + " on " + std::to_string(o.threads) +
                     " threads";
  text += o.augment ? " with crops and flips" : " without crops and flips";
  if (optimizer == "kfac")
    text += ", factors every " + std::to_string(o.factor_every) + ", inverses by " + o.inverse + " every " +
            std::to_string(o.inverse_every) + (o.inverse_rank > 0 ? " of rank " + std::to_string(o.inverse_rank) : "") +
            (o.kl_clip > 0 ? "" : ", no kl-clip");
  if (optimizer != "lamb" && o.momentum == 0) text += ", no momentum";
  if (o.label_smoothing > 0) text += ", smoothed labels";
  if (!o.checkpoint.empty()) text += ", commits";
  std::replace(text.begin(), text.end(), ',', ';');  // fields of the file are separated by commas
  return text;
}

}  // namespace experiments
