// SPDX-License-Identifier: Apache-2.0
// What the flags of experiments must agree on beyond their ranges: said before the first training, in a sentence.
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <skein/core/flags.hpp>

namespace experiments {

/// Throws FlagError where --FLAG names a value twice: the work would be done twice, and the figures of both be told apart by
/// nobody.
template <class Value> void check_distinct(const std::string& flag, const std::vector<Value>& values) {
  for (auto at = values.begin(); at != values.end(); ++at)
    if (std::find(values.begin(), at, *at) != at) {
      std::string text;
      if constexpr (std::is_arithmetic_v<Value>) text = std::to_string(*at);
      else text = *at;
      throw skein::FlagError("--" + flag + " has " + text + " twice: name each value once");
    }
}

/// Throws FlagError where --FLAG is more than there is; `what`: "samples of each rank". `more`: what gives more of them, or
/// nothing; `fewer`: who share them. A batch that no step has would set the rate that is in proportion to it.
inline void check_at_most(const std::string& flag, long value, long most, const std::string& what,
                          const std::string& more = "more --samples", const std::string& fewer = "fewer ranks") {
  if (value > most)
    throw skein::FlagError("--" + flag + " " + std::to_string(value) + " is more than the " + std::to_string(most) + " " + what +
                           ": give " + (most < 1 ? fewer : "a smaller one") + (more.empty() ? "" : ", or " + more));
}
/// Takes the first `samples` of what is trained with, and a sixth of them to test; all where there are 0. Returns whether that
/// has made the set smaller.
template <class TrainTest> bool take_samples(TrainTest& set, long samples) {
  const bool smaller = samples > 0 && samples < set.train.size();
  if (samples > 0) set.train = set.train.take(samples), set.test = set.test.take(std::max(samples / 6, 1L));
  return smaller;
}
/// What titles and names of figures say of a set of which only the first `samples` are taken: ", the first 600 images"; nothing
/// where these are 0, all.
inline std::string first_images(long samples) { return samples > 0 ? ", the first " + std::to_string(samples) + " images" : ""; }
/// A set in a title: its source without where it was found, and how much of it there is.
inline std::string data_in_words(const std::string& source, long samples) {
  return source.substr(0, std::min(source.find(" from "), source.find(" ("))) + first_images(samples);
}
/// What gives a set more samples: nothing where --samples have not made it smaller.
inline std::string more_samples(bool made_smaller) { return made_smaller ? "more --samples" : ""; }

/// The samples of a rank in a batch: --batch, or the rank's share of --global-batch, where that is not 0. Throws FlagError where
/// the ranks cannot share that equally: they would do different work, and the batch be another one.
inline long batch_of_rank(long batch, long global_batch, int ranks) {
  if (global_batch == 0) return batch;
  if (global_batch % ranks != 0)
    throw skein::FlagError("--global-batch " + std::to_string(global_batch) + " has no equal shares for " +
                           std::to_string(ranks) + " ranks: give a multiple of " + std::to_string(ranks));
  return global_batch / ranks;
}

/// Throws FlagError where a flag is `given` that does nothing `where`: "with --processes". Who gives it waits for what it
/// promises.
inline void check_unused(const std::string& flag, bool given, const std::string& where) {
  if (given) throw skein::FlagError("--" + flag + " does nothing " + where + ": leave it out");
}

/// Does the rate rise in the first epochs? Not where the training is over by then.
inline bool warms_up(int warmup, int epochs) { return warmup > 0 && warmup < epochs; }
/// What a program says of a warm-up that is left out; empty where it is as it was asked for.
inline std::string left_out_warmup(int warmup, int epochs) {
  if (warmup <= 0 || warms_up(warmup, epochs)) return "";
  return "no warm-up: --warmup " + std::to_string(warmup) + " is not below --epochs " + std::to_string(epochs) +
         ", so the training would end before the rate is there; give a smaller one, or --warmup 0\n";
}

}  // namespace experiments
