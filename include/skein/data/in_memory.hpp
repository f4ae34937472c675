// SPDX-License-Identifier: Apache-2.0
// A data set in memory: samples as float, double or bytes, with labels or target vectors. Bytes stay bytes (MNIST takes 47 MB
// instead of 188) and become numbers, normalised, as they are gathered.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "subset.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Samples in memory, shared by all copies and slices. Integers of 32 bits are tokens to a network that takes such. Bytes are
/// served as byte / 255, then every value as (value - mean) / deviation; by default 0 and 1.
template <class Stored = float> class InMemory {
  static_assert(std::is_same_v<Stored, float> || std::is_same_v<Stored, double> || std::is_same_v<Stored, std::uint8_t> ||
                    std::is_same_v<Stored, std::int32_t>,
                "data::InMemory keeps samples as float, double, std::uint8_t or std::int32_t");

 public:
  /// The type of target vectors: double for double samples, else float.
  using Real = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

  InMemory() = default;
  /// Samples without targets, one after another, dense. Throws ShapeError where the counts do not fit; so do the others.
  InMemory(Extents sample, std::vector<Stored> samples) : InMemory(sample, std::move(samples), {}, {}, Target{}) {}
  /// With class numbers, `each` a sample one behind the other; `classes` 0: the largest label plus one.
  InMemory(Extents sample, std::vector<Stored> samples, std::vector<std::int32_t> labels, int classes = 0, int each = 1)
      : InMemory(sample, std::move(samples), std::move(labels), {}, Target::labels(classes, each)) {
    if (classes == 0)
      for (const std::int32_t label : storage_->labels) target_.count = std::max(target_.count, label + 1);
  }
  /// With target vectors of `length` values, one after another, dense.
  InMemory(Extents sample, std::vector<Stored> samples, std::vector<Real> targets, int length)
      : InMemory(sample, std::move(samples), {}, std::move(targets), Target::vector(length)) {}

  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }

  /// The same samples, served as (value - mean) / deviation; of bytes, value is byte / 255. Replaces an earlier normalise.
  InMemory normalize(double mean, double deviation) const {
    if (!(deviation > 0)) throw ArgumentError("normalise: the deviation must be positive");
    InMemory result = *this;
    result.mean_ = mean;
    result.deviation_ = deviation;
    return result;
  }
  /// Samples [begin, end), without a copy. Throws ArgumentError where they are not there.
  InMemory slice(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || end < begin || end > size_)
      throw ArgumentError("slice: [" + std::to_string(begin) + ", " + std::to_string(end) + ") is not within a data set of " +
                          std::to_string(size_) + " samples");
    InMemory result = *this;
    result.begin_ += begin;
    result.size_ = end - begin;
    return result;
  }
  /// The first n samples, or all where there are fewer; without a copy.
  InMemory take(std::int64_t n) const { return slice(0, std::clamp<std::int64_t>(n, 0, size_)); }
  /// Chosen samples in a chosen order; shares the samples.
  Subset<InMemory> subset(std::vector<std::int64_t> indices) const { return Subset<InMemory>(*this, std::move(indices)); }

  /// The stored values of sample i, not normalised.
  const Stored* stored(std::int64_t i) const { return storage_->samples.data() + (begin_ + i) * count_; }
  /// The label of sample i, or of those that it has the j-th.
  std::int32_t label(std::int64_t i, int j = 0) const {
    return storage_->labels[static_cast<std::size_t>((begin_ + i) * target_.each + j)];
  }

  template <class Scalar>
  requires std::is_floating_point_v<Scalar>
  void gather(Indices indices, Scalar* x, long pitch) const {
    constexpr double unit = std::is_same_v<Stored, std::uint8_t> ? 255.0 : 1.0;
    const Scalar scale = static_cast<Scalar>(1 / (unit * deviation_)), shift = static_cast<Scalar>(-mean_ / deviation_);
    const bool plain = unit == 1 && mean_ == 0 && deviation_ == 1;
    const std::size_t n = indices.size();
    if (count_ == 1) {  // functions of one variable: no loop within the loop
      const Stored* from = storage_->samples.data() + begin_;
      for (std::size_t i = 0; i < n; ++i) {
        const Scalar value = static_cast<Scalar>(from[indices[i]]);
        x[static_cast<long>(i) * pitch] = plain ? value : value * scale + shift;
      }
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i + 2 < n) fetch_ahead(stored(indices[i + 2]));
      const Stored* from = stored(indices[i]);
      Scalar* to = x + static_cast<long>(i) * pitch;
      if (plain)
        for (long j = 0; j < count_; ++j) to[j] = static_cast<Scalar>(from[j]);
      else
        for (long j = 0; j < count_; ++j) to[j] = static_cast<Scalar>(from[j]) * scale + shift;
    }
  }
  /// As tokens.
  void gather(Indices indices, std::int32_t* x, long pitch) const requires std::is_same_v<Stored, std::int32_t> {
    for (const std::int64_t i : indices) {
      std::copy_n(stored(i), count_, x);
      x += pitch;
    }
  }
  void labels(Indices indices, std::int32_t* out) const {
    for (const std::int64_t i : indices)
      for (int j = 0; j < target_.each; ++j) *out++ = label(i, j);
  }
  template <class Scalar>
  requires std::is_floating_point_v<Scalar>
  void targets(Indices indices, Scalar* y, long pitch) const {
    if (target_.count == 1) {
      const Real* from = storage_->targets.data() + begin_;
      for (std::size_t i = 0; i < indices.size(); ++i) y[static_cast<long>(i) * pitch] = static_cast<Scalar>(from[indices[i]]);
      return;
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Real* from = storage_->targets.data() + (begin_ + indices[i]) * target_.count;
      for (int j = 0; j < target_.count; ++j) y[static_cast<long>(i) * pitch + j] = static_cast<Scalar>(from[j]);
    }
  }

 private:
  struct Storage {
    std::vector<Stored> samples;
    std::vector<std::int32_t> labels;
    std::vector<Real> targets;
  };

  InMemory(Extents sample, std::vector<Stored> samples, std::vector<std::int32_t> labels, std::vector<Real> targets,
           Target target)
      : sample_(sample), target_(target) {
    if (sample.rank < 1 || sample.rank > 4 || sample.count() <= 0)
      throw ShapeError("a data set in memory: the extents of a sample must be one to four positive numbers");
    count_ = sample.count();
    size_ = static_cast<std::int64_t>(samples.size()) / count_;
    if (size_ * count_ != static_cast<std::int64_t>(samples.size()))
      throw ShapeError("a data set in memory: " + std::to_string(samples.size()) + " values are no whole number of samples of " +
                       std::to_string(count_) + " values");
    const std::size_t given = target.kind == TargetKind::label ? labels.size() : targets.size();
    const std::int64_t each = target.kind == TargetKind::vector ? target.count : target.each;
    if (target.kind == TargetKind::vector && each < 1)
      throw ShapeError("a data set in memory: the length of a target must be positive");
    if (target.kind == TargetKind::label && each < 1) throw ShapeError("a data set in memory: a sample has at least one label");
    if (target.kind != TargetKind::none && static_cast<std::int64_t>(given) != size_ * each)
      throw ShapeError("a data set in memory: " + std::to_string(size_) + " samples need " + std::to_string(size_ * each) +
                       (target.kind == TargetKind::label ? " labels" : " target values") + ", " + std::to_string(given) +
                       " are given");
    storage_ = std::make_shared<const Storage>(Storage{std::move(samples), std::move(labels), std::move(targets)});
  }

  /// Rows are chosen at random: the processor's own prefetcher sees no pattern from one to the next.
  void fetch_ahead(const Stored* row) const {
    const char* p = reinterpret_cast<const char*>(row);
    const long bytes = std::min<long>(count_ * static_cast<long>(sizeof(Stored)), 1024);
    for (long b = 0; b < bytes; b += 64) __builtin_prefetch(p + b);
  }

  Extents sample_{1, {1}};
  Target target_{};
  long count_ = 1;
  std::int64_t begin_ = 0, size_ = 0;
  double mean_ = 0, deviation_ = 1;
  std::shared_ptr<const Storage> storage_ = std::make_shared<const Storage>();
};

}  // namespace skein::inline SKEIN_ABI::data
