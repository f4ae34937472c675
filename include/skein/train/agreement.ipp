// SPDX-License-Identifier: Apache-2.0
// The bodies of agreement.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "../comm/differences.hpp"
#include "../comm/launch/started_ranks.hpp"
#include "agreement.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void warn_of_ranks_apart() {
  static std::atomic<bool> said{false};
  const comm::launch::StartedRank here = comm::launch::started_rank();
  if (here.ranks == 1 || here.rank != 0 || said.exchange(true)) return;
  std::fprintf(stderr,
               "fit: %d ranks were started, and this Trainer has no policy: each rank trains a model of its own. Give it one, "
               "Trainer{model, loss, optimizer, DataParallel{world}}; or parallel::Alone{}, if that is meant\n",
               here.ranks);
}

namespace detail {
SKEIN_INLINE std::string names_of(const std::vector<AnyMetric>& metrics) {
  TextList names;
  for (const AnyMetric& m : metrics) names.add(m.name());
  return names.or_words("none");
}
}  // namespace detail

SKEIN_INLINE void describe(const EvaluateOptions& o, NamedValues& to) {
  to.of("").add("the call of all ranks", "evaluate");
  to.add(".batch", o.batch).add(".metrics", detail::names_of(o.metrics));
}

SKEIN_INLINE void describe(const FitOptions& o, NamedValues& to) {
  to.of("").add("the call of all ranks", "fit");  // first: it is what is said where one rank calls another
  to.add(".epochs", o.epochs).add(".batch", o.batch).add(".loader.batch_per_rank", o.loader.batch_per_rank);
  to.add(".loader.partition", o.loader.partition == data::Partition::local ? "local" : "shared");
  to.add(".loader.shuffle", o.loader.shuffle).add(".loader.last", o.loader.last == data::LastBatch::drop ? "drop" : "keep");
  to.add(".step.accumulate", o.step.accumulate).add(".clip_norm", o.clip_norm).add(".checkpoint.async", o.checkpoint.async);
  to.add(".compute.denormals", o.compute.denormals == Denormals::keep ? "keep" : "flush").add(".compute.graph", o.compute.graph);
  if (const auto& s = o.step.loss_scaling)
    to.add(".step.loss_scaling", text("{{}, {}, {}, {}, {}, {}, {}}", s->initial, s->growth, s->backoff, s->interval, s->least,
                                      s->greatest, s->looks ? 1 : 0));
  else to.add(".step.loss_scaling", "as it comes");
  to.add(".on_nan", o.on_nan == OnNan::stop ? "stop" : o.on_nan == OnNan::skip ? "skip" : "go_on");
  to.add(".check.replicas_every", o.check.replicas_every).add(".metrics", detail::names_of(o.metrics));
  to.add(".checkpoint", text("{{}, {}, {}}", o.checkpoint.folder.path(), o.checkpoint.every, o.checkpoint.keep));
  to.add(".interrupt", text("{{}, {}}", o.interrupt.on_signals ? 1 : 0, o.interrupt.also));
  const optim::Schedule schedule =
      o.schedule.bound({.steps = 10000, .steps_per_epoch = 1000, .refuses_longer = false});  // of any fit: the same on all
  const auto add_step = [&](std::int64_t step) {
    to.add(text("the factor of .schedule (if the fit were 10 epochs of 1000 steps) in step {}", step), schedule(step - 1));
  };
  add_step(1);
  if (!schedule.has_all_steps()) return;  // a user's table may end with the fit
  for (std::int64_t decade = 1; decade <= 1'000'000; decade *= 10) {
    if (decade > 1) add_step(decade);
    add_step(3 * decade);
  }
}

namespace detail {

/// Samples as a set serves them, and their labels or targets, by their bytes.
struct SampleBytes {
  std::string samples, targets;
};
template <class Value> SampleBytes bytes_of(const data::DatasetView& data, data::Indices samples) {
  const auto n = samples.size();
  const auto each = static_cast<std::size_t>(data.sample_extents().count());
  const auto labels_each = static_cast<std::size_t>(data.target().each), length = static_cast<std::size_t>(data.target().count);
  std::vector<Value> x(n * each), targets;
  std::vector<std::int32_t> labels;
  data::Destination<Value> to{.x = x.data(), .pitch = static_cast<long>(each)};
  if (data.target().kind == data::TargetKind::label) labels.resize(n * labels_each), to.labels = labels.data();
  if (data.target().kind == data::TargetKind::vector) {
    targets.resize(n * length);
    to.targets = targets.data(), to.target_pitch = static_cast<long>(length);
  }
  data.serve(samples, to);
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  return {bytes(x), bytes(labels) + bytes(targets)};
}

/// The first, the middle and the last sample. A set that may bring them from anywhere is asked for the first one twice: what it
/// draws at random is not compared.
SKEIN_INLINE std::string bytes_to_compare(const data::DatasetView& data) {
  const std::int64_t samples[] = {0, data.size() / 2, data.size() - 1};
  const auto bytes = [&](data::Indices of) {
    return data.gives_numbers() ? bytes_of<float>(data, of) : bytes_of<std::int32_t>(data, of);
  };
  SampleBytes all = bytes(samples);
  if (data.non_finite() == data::NonFinite::absent) return all.samples + all.targets;
  const SampleBytes again = bytes(data::Indices(samples, 1));
  if (!all.samples.starts_with(again.samples)) all.samples.clear();
  if (!all.targets.starts_with(again.targets)) all.targets.clear();
  return all.samples + all.targets;
}

/// One sample and what belongs to it; empty where the set draws it at random.
SKEIN_INLINE std::string bytes_of_sample(const data::DatasetView& data, std::int64_t sample) {
  const auto bytes = [&] {
    const data::Indices one(&sample, 1);
    const SampleBytes b = data.gives_numbers() ? bytes_of<float>(data, one) : bytes_of<std::int32_t>(data, one);
    return b.samples + b.targets;
  };
  const std::string once = bytes();
  return data.non_finite() == data::NonFinite::absent || bytes() == once ? once : std::string();
}

SKEIN_INLINE void describe_samples(const data::DatasetView& data, std::string_view set, NamedValues& to) {
  if (data.size() == 0) return;
  const std::string name = text("the content of the first, middle and last {} sample", set);
  try {
    const std::string bytes = bytes_to_compare(data);
    to.add_hash(name, bytes.data(), bytes.size());
  } catch (const std::exception& e) {  // of all ranks: a step says so
    std::string why = e.what();
    std::replace_if(
        why.begin(), why.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    to.add(name, "not to be had (" + why + ")");
  }
}

}  // namespace detail

SKEIN_INLINE void describe(const data::DatasetView& data, std::string_view set, bool shared, NamedValues& to) {
  if (!data) return;
  if (shared) to.add(text("the number of {} samples", set), data.size());
  to.add(text("the shape of a {} sample", set), text("({})", joined(data.sample_extents())));
  if (shared) detail::describe_samples(data, set, to);
  for (const std::uint64_t encoder : data.origin().encoders) to.add(text("the TableEncoder hash of {} samples", set), encoder);
}

SKEIN_INLINE std::uint64_t hash_of_part(const data::DatasetView& data, const FitOptions& options, parallel::SameWeights same) {
  if (options.loader.partition != data::Partition::local || same != parallel::SameWeights::after_step) return 0;
  const std::int64_t size = data ? data.size() : 0, count = std::min<std::int64_t>(size, 16);
  std::string all, first;
  try {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string one = detail::bytes_of_sample(data, i * (size - 1) / std::max<std::int64_t>(1, count - 1));
      if (i == 0) first = one;
      if (one.empty()) return 0;
      all += one;
    }
  } catch (const std::exception&) { return 0; }  // a step says so
  for (std::int64_t i = 1; i < count; ++i)
    if (all.compare(static_cast<std::size_t>(i) * first.size(), first.size(), first) != 0)
      return (hash64(all.data(), all.size()) ^ (static_cast<std::uint64_t>(size) << 1)) | 1;
  return 0;
}

SKEIN_INLINE void describe(const optim::Groups& groups, NamedValues& to) {
  std::string rules;
  for (const optim::GroupRule& r : groups.rules) {
    rules += text("\"{}\"{}", r.pattern, r.predicate ? " (some)" : "");
    if (r.lr_factor) rules += text(" lr * {}", *r.lr_factor);
    if (r.decay_factor) rules += text(" weight_decay * {}", *r.decay_factor);
    if (r.freeze) rules += *r.freeze ? " frozen" : " trainable";
    rules += "; ";
  }
  to.of("the optimizer").add(".groups", rules.empty() ? "none" : std::string_view(rules));
}

SKEIN_INLINE void describe(std::span<const plan::LayerNode> layers, std::span<const plan::PathPart> paths, NamedValues& to) {
  to.of("");
  for (const plan::LayerNode& layer : layers) {
    plan::Name name;
    plan::append_path(name, paths, layer.path);
    const std::string_view path(name.text, static_cast<std::size_t>(std::max(1, name.length) - 1));  // without the last dot
    const std::string named = path.empty() ? "the layer" : text("layer {}", path);
    const std::string_view kind = layer.bare_kind();
    to.add(named, kind);
    if (layer.options != 0)
      to.add_hash(text("the content of the options of {} ({})", named, kind), &layer.options, sizeof layer.options);
  }
}

SKEIN_INLINE void describe(const TrainingPosition& position, std::int64_t steps, NamedValues& to) {
  to.of("").add("the number of epochs done", position.base + position.epoch).add("the step within the epoch", position.step);
  to.add("the number of optimizer steps done", steps);
}

namespace detail {

SKEIN_INLINE AgreementHashes hashes_of(const Agreement& own) {
  return {{own.all.hash(), own.trains ? own.training.hash() | 1 : 0, own.own_part}};
}

SKEIN_INLINE void check_parts(std::string_view call, const std::vector<std::uint64_t>& of_all) {
  std::uint64_t part = 0;
  int ranks = 0;
  for (std::size_t r = 0; r < of_all.size(); r += AgreementHashes::count) {
    if (of_all[r + 1] == 0) continue;  // a server
    if (of_all[r + 2] == 0 || (part != 0 && of_all[r + 2] != part)) return;
    part = of_all[r + 2];
    ++ranks;
  }
  if (ranks < 2) return;
  throw CommError(
      std::string(call) +
      ": all ranks have given the same training samples as their own part (.loader.partition is local), so that each trains on "
      "all of them: give each rank its part, such as set.slice(begin, end); or leave .partition out, and the ranks divide the "
      "set");
}

SKEIN_INLINE bool same(const std::vector<std::uint64_t>& of_all) {
  std::uint64_t training = 0;
  for (std::size_t r = 0; r < of_all.size(); r += AgreementHashes::count) {
    if (of_all[r] != of_all[0]) return false;
    if (training != 0 && of_all[r + 1] != 0 && of_all[r + 1] != training) return false;
    training = std::max(training, of_all[r + 1]);
  }
  return true;
}

SKEIN_INLINE std::string text_of(const Agreement& own) {
  return own.trains ? "+" + own.all.lines() + own.training.lines() : "-" + own.all.lines();
}

SKEIN_INLINE void fail_disagreement(std::string_view call, const std::vector<std::string>& texts, const comm::RankNames& names) {
  const std::string found = comm::differences(texts, names);
  const bool parts =
      found.starts_with("the content of the first, middle and last training") || found.starts_with("the number of training");
  throw CommError(std::string(call) + ": " + found + ": give all ranks the same" +
                  (parts ? " whole set, in the same order; where each rank has samples of its own, say .loader = "
                           "{.partition = data::Partition::local}"
                         : ""));
}

SKEIN_INLINE void fail_files(std::string_view call, const std::vector<std::string>& texts, const comm::RankNames& names) {
  TextList list;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const std::string rank = names.name(static_cast<int>(r));
    if (texts[r].starts_with('!')) throw CommError(text("{}: {} could not read its file: {}", call, rank, texts[r].substr(1)));
    list.add(text("'{}' on {}", texts[r], rank));
  }
  throw CommError(
      text("{}: the ranks have read files that differ: {}: give all ranks the same file, or copies of it", call, list.text()));
}

}  // namespace detail
}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
