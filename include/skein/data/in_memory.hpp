// SPDX-License-Identifier: Apache-2.0
// A data set in memory, allocated or mapped: samples as float, double or bytes, with labels or target vectors. Bytes stay bytes
// (MNIST takes 47 MB instead of 188) and become numbers, normalised, as they are gathered.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "finite.hpp"
#include "origin.hpp"
#include "subset.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// What a data set in memory is made of, in numbers.
struct InMemoryCounts {
  std::int64_t values = 0, labels = 0, targets = 0;  ///< that are given
};
/// Throws ShapeError for extents that are not one to four positive numbers behind their count.
void check_sample(const Extents& sample);
/// The number of samples. Throws ShapeError where the counts do not fit.
std::int64_t count_samples(const Extents& sample, const Target& target, const InMemoryCounts& given);
/// `classes`, or the largest label plus one where it is 0. Throws ArgumentError where a label is not below it. Labels below 0 are
/// ignored by losses that say so.
int count_classes(std::span<const std::int32_t> labels, int classes);
/// Counts the classes of labels that a file has, `each` a sample; `in` says where in it: "in 'y' ". A label that is not below
/// them is a FileError, and a number of classes below 0 an ArgumentError that names the file.
int count_classes_of_file(const std::string& path, const std::string& in, std::span<const std::int32_t> labels, int each,
                          int classes);
/// Throws ArgumentError: bytes have no such mean and deviation, or these make values infinite.
[[noreturn]] void refuse_normalization(double mean, double deviation, bool of_bytes);
/// Throws ArgumentError: a set that is normalised is asked for tokens.
[[noreturn]] void refuse_normalized_tokens();
/// Throws ArgumentError for value `at` of a data set, which is not finite; `each` values are of a sample.
[[noreturn]] void throw_not_finite(const char* what, double value, std::int64_t at, long each);
}  // namespace detail

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
  /// Shares the samples. There is no other move: a set that was moved from is as it was.
  InMemory(const InMemory&) = default;
  InMemory& operator=(const InMemory&) = default;
  /// Samples without targets, one after another, dense. Throws ShapeError where the counts do not fit, ArgumentError where a
  /// value is infinite or not a number and not NonFinite::keep is given; so do the others.
  InMemory(Extents sample, std::vector<Stored> samples, NonFinite non_finite = NonFinite::refuse)
      : InMemory(sample, std::move(samples), {}, {}, Target{}, non_finite) {}
  /// With class numbers, `each` a sample one behind the other; `classes` 0: the largest label plus one.
  InMemory(Extents sample, std::vector<Stored> samples, std::vector<std::int32_t> labels, int classes = 0, int each = 1,
           NonFinite non_finite = NonFinite::refuse)
      : InMemory(sample, std::move(samples), std::move(labels), {}, Target::labels(classes, each), non_finite) {}
  /// With target vectors of `length` values, one after another, dense.
  InMemory(Extents sample, std::vector<Stored> samples, std::vector<Real> targets, int length,
           NonFinite non_finite = NonFinite::refuse)
      : InMemory(sample, std::move(samples), {}, std::move(targets), Target::vector(length), non_finite) {}
  /// Samples that lie elsewhere, such as in a file that is mapped, and are there as long as `owner` is; with labels or target
  /// vectors as `target` says. Throws ShapeError where the counts do not fit. Nobody reads the samples here: whether they are
  /// finite a loader looks at, batch by batch.
  InMemory(Extents sample, std::span<const Stored> samples, std::shared_ptr<const void> owner, std::vector<std::int32_t> labels,
           std::vector<Real> targets, Target target)
      : sample_(sample), target_(target) {
    const double magnitude = real ? std::numeric_limits<double>::infinity() : greatest_integer;
    keep(samples,
         {.owner = std::move(owner), .labels = std::move(labels), .targets = std::move(targets), .magnitude = magnitude});
  }

  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }
  /// keep where that was asked for; refuse where a double is too large for a float: it may be served as such.
  NonFinite non_finite() const {
    if (storage_->non_finite == NonFinite::keep) return NonFinite::keep;
    return served_magnitude(mean_, deviation_) > largest_float ? NonFinite::refuse : NonFinite::absent;
  }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }
  /// For Trainer::keep: a Predictor of the file then takes raw samples.
  Normalization normalization() const { return {{mean_}, {deviation_}, std::is_same_v<Stored, std::uint8_t> ? 255.0 : 1.0}; }

  /// Where the samples come from, as data::join and Trainer::fit compare it.
  Origin origin() const { return origin_ ? *origin_ : Origin{}; }
  /// The same samples, which say that they come from there.
  InMemory made_by(Origin origin) const {
    InMemory result = *this;
    result.origin_ = std::make_shared<const Origin>(std::move(origin));
    return result;
  }

  /// The same samples, served as (value - mean) / deviation; of bytes, value is byte / 255. Replaces an earlier normalize. Throws
  /// ArgumentError where mean or deviation is no number for it, or makes values infinite.
  InMemory normalize(double mean, double deviation) const {
    check_normalization(mean, deviation);
    if (std::is_same_v<Stored, std::uint8_t> && (mean < 0 || mean > 1 || deviation > 1))
      detail::refuse_normalization(mean, deviation, true);
    if (storage_->non_finite != NonFinite::keep && served_magnitude(mean, deviation) > largest_float &&
        storage_->magnitude <= largest_float)
      detail::refuse_normalization(mean, deviation, false);
    InMemory result = *this;
    result.mean_ = mean;
    result.deviation_ = deviation;
    if (origin().normalized_as_read) result.origin_ = nullptr;
    return result;
  }
  /// Samples [begin, end), without a copy. Throws ArgumentError where they are not there.
  InMemory slice(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || end < begin || end > size_)
      throw ArgumentError(text("slice: [{}, {}) is not within a data set of {} samples", begin, end, size_));
    InMemory result = *this;
    result.begin_ += begin;
    result.size_ = end - begin;
    return result;
  }
  /// The first n samples, or all where there are fewer; without a copy.
  InMemory take(std::int64_t n) const {
    if (n < 0) throw ArgumentError(text("take: {} samples: give a number of them, 0 or more", n));
    return slice(0, std::min(n, size_));
  }
  /// Chosen samples in a chosen order; shares the samples.
  Subset<InMemory> subset(std::vector<std::int64_t> indices) const { return Subset<InMemory>(*this, std::move(indices)); }

  /// The stored values of sample i, not normalised.
  const Stored* stored(std::int64_t i) const { return samples_.data() + (begin_ + i) * count_; }
  /// The label of sample i, or of those that it has the j-th.
  std::int32_t label(std::int64_t i, int j = 0) const {
    return storage_->labels[static_cast<std::size_t>((begin_ + i) * target_.each + j)];
  }

  template <class Scalar>
  requires std::is_floating_point_v<Scalar>
  void gather(Indices indices, Scalar* x, long pitch) const {
    constexpr bool bytes = std::is_same_v<Stored, std::uint8_t>;
    const Scalar byte_scale = static_cast<Scalar>(1 / (255 * deviation_)), byte_shift = static_cast<Scalar>(-mean_ / deviation_);
    const double mean = mean_, scale = 1 / deviation_;
    const auto normalized = [=](Stored value) {  // in double: a float loses what is left of large values without their mean
      if constexpr (bytes) return static_cast<Scalar>(value) * byte_scale + byte_shift;
      else return static_cast<Scalar>((static_cast<double>(value) - mean) * scale);
    };
    const bool plain = !bytes && mean_ == 0 && deviation_ == 1;
    const std::size_t n = indices.size();
    if (count_ == 1) {  // functions of one variable: no loop within the loop
      const Stored* from = samples_.data() + begin_;
      for (std::size_t i = 0; i < n; ++i) {
        const Stored value = from[indices[i]];
        x[static_cast<long>(i) * pitch] = plain ? static_cast<Scalar>(value) : normalized(value);
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
        for (long j = 0; j < count_; ++j) to[j] = normalized(from[j]);
    }
  }
  /// Copies samples as tokens. Throws ArgumentError where the set is normalised: those are numbers.
  void gather(Indices indices, std::int32_t* x, long pitch) const requires std::is_same_v<Stored, std::int32_t> {
    if (mean_ != 0 || deviation_ != 1) detail::refuse_normalized_tokens();
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
    std::shared_ptr<const void> owner;  // of the samples
    std::vector<std::int32_t> labels;
    std::vector<Real> targets;
    NonFinite non_finite = NonFinite::absent;
    double magnitude = 0, target_magnitude = 0;  // the greatest of all values
  };
  static constexpr bool real = std::is_floating_point_v<Stored>;
  static constexpr double greatest_integer = std::is_same_v<Stored, std::uint8_t> ? 255 : 2147483648.0;
  static constexpr double largest_float = 3.4028234663852886e38;

  InMemory(Extents sample, std::vector<Stored> samples, std::vector<std::int32_t> labels, std::vector<Real> targets,
           Target target, NonFinite non_finite)
      : sample_(sample), target_(target) {
    auto owned = std::make_shared<const std::vector<Stored>>(std::move(samples));
    const std::span<const Stored> all(owned->data(), owned->size());
    keep(all, {std::move(owned), std::move(labels), std::move(targets), non_finite, greatest_integer});
  }
  /// The number of samples, and of classes where nobody has said it; and looks at values that somebody may have to.
  void keep(std::span<const Stored> samples, Storage storage) {
    size_ = detail::count_samples(sample_, target_,
                                  {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(storage.labels.size()),
                                   static_cast<std::int64_t>(storage.targets.size())});
    count_ = sample_.count();
    if (target_.kind == TargetKind::label)
      target_.count = detail::count_classes({storage.labels.data(), storage.labels.size()}, static_cast<int>(target_.count));
    if (storage.non_finite != NonFinite::keep) {
      if (real && detail::finite(storage.magnitude))
        if constexpr (real) storage.magnitude = checked_magnitude(samples, "value", count_);
      storage.target_magnitude =
          checked_magnitude(std::span<const Real>(storage.targets.data(), storage.targets.size()), "target value", target_.count);
    }
    samples_ = samples;
    storage_ = std::make_shared<const Storage>(std::move(storage));
  }
  template <class Value> static double checked_magnitude(std::span<const Value> values, const char* what, long each) {
    const double most = static_cast<double>(detail::greatest_magnitude(values));
    if (const long at = detail::finite(most) ? -1 : detail::first_not_finite(values); at >= 0)
      detail::throw_not_finite(what, static_cast<double>(values[static_cast<std::size_t>(at)]), at, each);
    return most;
  }
  /// No value is served that is greater.
  double served_magnitude(double mean, double deviation) const {
    constexpr double unit = std::is_same_v<Stored, std::uint8_t> ? 255.0 : 1.0;
    return std::max(storage_->target_magnitude, (storage_->magnitude / unit + (mean < 0 ? -mean : mean)) / deviation);
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
  std::span<const Stored> samples_{};
  std::shared_ptr<const Storage> storage_ = std::make_shared<const Storage>();
  std::shared_ptr<const Origin> origin_;  // null: nothing is known
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "in_memory.ipp"
#endif
