// SPDX-License-Identifier: Apache-2.0
// The bodies of training_position.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "../core/hash.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::uint64_t hash_of_shards(std::span<const std::int64_t> sizes) {
  Fnv1a hash;
  for (const std::int64_t n : sizes) hash.add(static_cast<std::uint64_t>(n));
  return sizes.empty() ? 0 : hash.value();
}

SKEIN_INLINE void check_order(const TrainingPosition& at, const EpochOrder& now) {
  const EpochOrder& then = at.order;
  if (at.step == 0 || then.batch == 0) return;
  const auto demand = [&](bool same, const char* name, auto was, auto is) {
    if (same) return;
    throw ArgumentError(
        text("fit: the loaded training goes on at step {} of its epoch {}, where {} was {}; now it is {}: go on "
             "with the same, or begin anew with its weights: a new Trainer, and load_weights(path)",
             at.step, at.base + at.epoch + 1, name, was, is));
  };
  demand(then.batch == now.batch, "the batch over all ranks (.batch)", then.batch, now.batch);
  demand(then.samples == now.samples, "the number of training samples", then.samples, now.samples);
  demand(then.shards == now.shards, "the hash of the shards' sizes (.loader.partition, ranks)", then.shards, now.shards);
  demand(then.shuffle == now.shuffle, ".loader.shuffle", then.shuffle, now.shuffle);
  demand(then.seed == now.seed, ".seed", then.seed, now.seed);
  demand(then.keeps_last == now.keeps_last, ".loader.last", then.keeps_last ? "keep" : "drop", now.keeps_last ? "keep" : "drop");
}

namespace detail {
/// The value of a name in lines of NamedValues; empty where there is none.
inline std::string_view value_in(std::string_view lines, std::string_view name) {
  for (; !lines.empty(); lines.remove_prefix(std::min(lines.size(), lines.find('\n')) + (lines.find('\n') != lines.npos)))
    if (lines.starts_with(name) && lines.substr(name.size()).starts_with('\t'))
      return lines.substr(name.size() + 1, lines.find('\n') - name.size() - 1);
  return {};
}
inline bool is_number(std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc{} && end == value.data() + value.size();
}
/// A file of an older version has the number of a setting that has a word today: which of them is not known.
inline bool word_in_place_of_number(std::string_view then, std::string_view own) { return is_number(then) && !is_number(own); }
}  // namespace detail

SKEIN_INLINE void say_others(std::string_view optimizer_then, std::string_view optimizer_now, const TrainingPosition& at,
                             const EpochOrder& now) {
  const auto differs = [&](std::string_view name, const auto& then, const auto& own) {
    std::fprintf(stderr, "%s\n",
                 printable(text("fit: {} was {} in the loaded training, and is {} now", name, then, own)).c_str());
  };
  while (!optimizer_then.empty()) {
    const std::string_view line = optimizer_then.substr(0, optimizer_then.find('\n'));
    optimizer_then.remove_prefix(std::min(optimizer_then.size(), line.size() + 1));
    const std::string_view name = line.substr(0, line.find('\t')), value = detail::value_in(line, name),
                           own = detail::value_in(optimizer_now, name);
    if (!value.empty() && !own.empty() && own != value && !detail::word_in_place_of_number(value, own)) differs(name, value, own);
  }
  const EpochOrder& then = at.order;
  if (at.step == 0 && then.batch != 0) {
    if (then.batch != now.batch) differs("the batch over all ranks (.batch)", then.batch, now.batch);
    if (then.samples != now.samples) differs("the number of training samples", then.samples, now.samples);
  }
}

SKEIN_INLINE void say_no_callbacks(std::uint64_t saved) {
  const std::string what = saved == 1 ? "the callback" : text("the {} callbacks", saved);
  std::fprintf(stderr, "%s\n", text("fit: goes on without {} of the loaded training, whose state is left out", what).c_str());
}

SKEIN_INLINE void say_begins_anew(const std::string& callback, int rank) {
  std::fprintf(
      stderr, "%s\n",
      text("fit: the callback {} of rank {} begins anew: a file has the states of rank 0's callbacks, and none of that name",
           callback, rank)
          .c_str());
}

SKEIN_INLINE void check_epochs(const TrainingPosition& at, int epochs) {
  if (at.epoch == 0 || at.epoch < epochs) return;
  throw ArgumentError(
      text("fit: nothing to do: {} of {} epochs are done. After load() .epochs is the total, with those of the "
           "file: ask for more than {}, or begin anew with its weights: a new Trainer, and load_weights(path)",
           at.epoch, epochs, at.epoch));
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
