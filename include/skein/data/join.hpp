// SPDX-License-Identifier: Apache-2.0
// Data sets side by side: sample i of the joined set is sample i of each, one after the other in a row, as a network with several
// inputs takes them; what belongs to them likewise, a class number as one value.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "normalization.hpp"
#include "origin.hpp"
#include "serve_from.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Data sets of the same samples, seen as one. See join().
template <class... Sets> class Joined {
 public:
  static constexpr bool prefers_threads = (data::prefers_threads<Sets>() || ...);
  static constexpr bool prefers_ascending = (data::prefers_ascending<Sets>() || ...);

  /// Throws ShapeError where the sets have not as many samples, or a row more values than an int counts, ArgumentError where they
  /// were split in different ways.
  explicit Joined(Sets... sets) : sets_(std::move(sets)...) {
    (assert_dataset<Sets>(), ...);
    each([&](const auto& set, Place) {
      const auto n = static_cast<std::int64_t>(set.size());
      if (size_ >= 0 && n != size_) throw ShapeError(text("data::join: one data set has {} samples, another {}", size_, n));
      size_ = n;
      detail::join_origin(origin_, detail::origin_of(set));
    });
    if (const long values = std::max(end().x, end().y); values > std::numeric_limits<int>::max())
      throw ShapeError(text("data::join: a joined row would have {} values, at most 2147483647 are possible", values));
  }

  std::int64_t size() const { return size_; }
  /// Flat: the values of all.
  Extents sample_extents() const { return {1, {static_cast<int>(end().x)}}; }
  Target target() const {
    const int n = static_cast<int>(end().y);
    return n > 0 ? Target::vector(n) : Target{};
  }
  /// What each set gives, in their order; those of a joined set one by one.
  std::vector<JoinedPart> parts() const {
    std::vector<JoinedPart> all;
    each([&]<class Set>(const Set& set, Place) {
      if constexpr (HasParts<Set>)
        for (const JoinedPart& part : set.parts()) all.push_back(part);
      else all.push_back({Extents(set.sample_extents()), detail::target_of(set)});
    });
    return all;
  }
  /// The encoders of all, and the split that chose the samples.
  const Origin& origin() const { return origin_; }
  /// One set that keeps values that are not finite has those of all kept: nobody looks at a joined row then.
  NonFinite non_finite() const {
    NonFinite all = NonFinite::absent;
    each([&](const auto& set, Place) {
      const NonFinite own = detail::non_finite_of(set);
      if (own == NonFinite::keep || all == NonFinite::absent) all = own;
    });
    return all;
  }
  /// The mean and deviation of each value of the joined row, from its own set; the divisor is 1 where those of the sets differ.
  Normalization normalization() const requires(HasNormalization<Sets> || ...) {
    Normalization all;
    bool raw = true, first = true;
    each([&](const auto& set, Place) {
      const Normalization own = detail::normalization_of(set);
      raw = raw && own.identity();
      all.whole = all.whole && own.whole;
      all.divisor = first || all.divisor == own.divisor ? own.divisor : 1;
      first = false;
    });
    if (raw) return all;
    each([&](const auto& set, Place) {
      const Normalization own = detail::normalization_of(set);
      const std::size_t count = static_cast<std::size_t>(length(set).x), n = own.mean.size();
      for (std::size_t i = 0; i < count; ++i) {
        all.mean.push_back(n > 0 ? own.mean[i % n] : 0);
        all.deviation.push_back(n > 0 ? own.deviation[i % n] : 1);
      }
    });
    return all;
  }
  template <class Scalar>
  requires(Gives<Sets, Scalar>&&...) void gather(Indices indices, Scalar* x, long pitch, std::int64_t epoch = 0) const {
    each([&](const auto& set, Place at) { detail::gather_from(set, indices, x + at.x, pitch, epoch); });
  }
  template <class Scalar> void targets(Indices indices, Scalar* y, long pitch) const {
    each([&](const auto& set, Place at) {
      using Set = std::remove_cvref_t<decltype(set)>;
      const TargetKind kind = detail::target_of(set).kind;
      if constexpr (gives_targets<Set>)
        if (kind == TargetKind::vector) detail::targets_from(set, indices, y + at.y, pitch);
      if constexpr (gives_labels<Set>)
        if (kind == TargetKind::label) {
          const long own = detail::target_of(set).each;
          std::vector<std::int32_t> labels(indices.size() * static_cast<std::size_t>(own));
          detail::labels_from(set, indices, labels.data());
          for (long i = 0; i < static_cast<long>(labels.size()); ++i)
            y[i / own * pitch + at.y + i % own] = static_cast<Scalar>(labels[static_cast<std::size_t>(i)]);
        }
    });
  }

 private:
  struct Place {
    long x = 0, y = 0;  // in the rows of samples and of targets
  };
  template <class Set> static Place length(const Set& set) {
    const Target t = detail::target_of(set);
    return {Extents(set.sample_extents()).count(), t.kind == TargetKind::vector  ? t.count
                                                   : t.kind == TargetKind::label ? t.each
                                                                                 : 0};
  }
  template <class F> Place each(F&& f) const {
    Place at;
    std::apply(
        [&](const Sets&... set) {
          auto one = [&](const auto& s) {
            f(s, at);
            const Place own = length(s);
            at = {at.x + own.x, at.y + own.y};
          };
          (one(set), ...);
        },
        sets_);
    return at;
  }
  Place end() const {
    return each([](const auto&, Place) {});
  }

  std::tuple<Sets...> sets_;
  std::int64_t size_ = -1;
  Origin origin_;
};

/// Data sets whose samples belong together by their number: images and a table, numbers of two kinds, samples and their targets.
/// A set may have labels, target vectors or nothing.
template <class... Sets> Joined<std::remove_cvref_t<Sets>...> join(Sets&&... sets) {
  (detail::assert_held<Sets>(), ...);
  if constexpr ((detail::can_be_held<Sets> && ...)) return Joined<std::remove_cvref_t<Sets>...>(std::forward<Sets>(sets)...);
  else std::abort();
}

}  // namespace skein::inline SKEIN_ABI::data
