// SPDX-License-Identifier: Apache-2.0
// The bodies of in_memory.hpp.
#pragma once
#include <functional>

#include "../core/text.hpp"
#include "in_memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE void check_sample(const Extents& sample) {
  bool right = sample.positive();
  for (int i = sample.rank; right && i < 4; ++i) right = sample[i] == 0;
  if (!right)
    throw ShapeError(
        "a data set in memory: the extents of a sample must be one to four positive numbers, behind their count: "
        "sk::Extents{3, {28, 28, 1}} of an image, sk::Extents{1, {4}} of four values");
}

SKEIN_INLINE std::int64_t count_samples(const Extents& sample, const Target& target, const InMemoryCounts& given) {
  const std::string set = "a data set in memory: ";
  check_sample(sample);
  const std::int64_t count = sample.count(), size = given.values / count;
  if (size * count != given.values)
    throw ShapeError(skein::text("{}{} values are no whole number of samples of {} values", set, given.values, count));
  if (target.kind == TargetKind::none) return size;
  const bool labels = target.kind == TargetKind::label;
  const std::int64_t each = labels ? target.each : target.count, there = labels ? given.labels : given.targets;
  if (each < 1) throw ShapeError(set + (labels ? "a sample has at least one label" : "the length of a target must be positive"));
  if (there == size * each) return size;
  std::string text =
      skein::text("{}{} samples need {}{}, {} are given", set, size, size * each, (labels ? " labels" : " target values"), there);
  if (count == 1 && each == 1 && there > 0 && size > there && size % there == 0)
    text +=
        skein::text(": if a sample has {} values, say so: from_tensors(x, sk::Extents{1, {{}}}, y)", size / there, size / there);
  throw ShapeError(text);
}

/// refuse(label, its place, what it is not below) throws.
SKEIN_INLINE int count_classes_or(
    const std::string& set, std::span<const std::int32_t> labels, int classes,
    const std::function<void(std::int32_t label, std::size_t at, const std::string& limit)>& refuse) {
  if (classes < 0)
    throw ArgumentError(text("{}: {} classes: give their number, or 0 for the largest label plus one", set, classes));
  std::size_t largest = 0;
  for (std::size_t i = 1; i < labels.size(); ++i)
    if (labels[i] > labels[largest]) largest = i;
  const std::int32_t label = labels.empty() ? -1 : labels[largest];
  if (label >= (classes > 0 ? classes : std::numeric_limits<std::int32_t>::max()))
    refuse(label, largest,
           classes > 0 ? text("the number of classes, {}", classes) : std::string("the greatest number of classes"));
  return classes > 0 ? classes : label < 0 ? 0 : label + 1;
}

SKEIN_INLINE int count_classes(std::span<const std::int32_t> labels, int classes) {
  return count_classes_or("a data set", labels, classes, [](std::int32_t label, std::size_t at, const std::string& limit) {
    throw ArgumentError(text("a data set: label {} (number {}) is not below {}", label, at, limit));
  });
}

SKEIN_INLINE int count_classes_of_file(const std::string& path, const std::string& in, std::span<const std::int32_t> labels,
                                       int each, int classes) {
  return count_classes_or(path, labels, classes, [&](std::int32_t label, std::size_t at, const std::string& limit) {
    const std::size_t sample = at / static_cast<std::size_t>(each);
    throw FileError(path, -1, text("has {}the label {} of sample {}, which is not below {}", in, label, sample, limit));
  });
}

SKEIN_INLINE void refuse_normalization(double mean, double deviation, bool of_bytes) {
  const std::string given = text("a mean of {} and a deviation of {}", mean, deviation);
  throw ArgumentError(
      of_bytes ? text("normalize: bytes are served as byte / 255, from 0 to 1, and then normalised: {} are not theirs; divide "
                      "those of the bytes by 255",
                      given)
               : text("normalize: {} make values infinite: data::moments(set) has those of the set", given));
}

SKEIN_INLINE void refuse_normalized_tokens() {
  throw ArgumentError(
      "a data set in memory is normalised, and tokens are asked for, which have no mean: give the set without normalize(...), or "
      "the model an input of numbers, Shape<...>");
}

SKEIN_INLINE void throw_not_finite(const char* what, double value, std::int64_t at, long each) {
  const std::int64_t n = each > 0 ? each : 1;
  throw ArgumentError(
      skein::text("a data set in memory: {} {} of sample {} is {}{}: correct it; if such values are intended, give "
                  "data::NonFinite::keep as the last argument",
                  what, at % n, at / n, not_finite_text(value), (value == value ? " (a float holds numbers up to 3.4e38)" : "")));
}

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
