// SPDX-License-Identifier: Apache-2.0
// Chosen samples of a data set, in a chosen order, as a data set; and a random split in two. The data set is held by value:
// in-memory sets share their samples, so that copying one is cheap.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "normalize.hpp"
#include "origin.hpp"
#include "permutation.hpp"
#include "serve_from.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// Indices that all copies share. There is no other move: what was moved from has them still.
class SharedIndices {
 public:
  explicit SharedIndices(std::vector<std::int64_t> own)
      : all_(std::make_shared<const std::vector<std::int64_t>>(std::move(own))) {}
  SharedIndices(const SharedIndices&) = default;
  SharedIndices& operator=(const SharedIndices&) = default;
  const std::vector<std::int64_t>& operator*() const { return *all_; }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> all_;
};
}  // namespace detail

/// Samples `indices[0], indices[1], ...` of a data set.
template <class Data> class Subset {
 public:
  static constexpr bool prefers_threads = data::prefers_threads<Data>();
  static constexpr bool prefers_ascending = data::prefers_ascending<Data>();

  /// Throws ArgumentError for an index outside the data set.
  Subset(Data data, std::vector<std::int64_t> indices) : data_(std::move(data)), indices_(std::move(indices)) {
    assert_dataset<Data>();
    const std::int64_t size = static_cast<std::int64_t>(data_.size());
    for (const std::int64_t i : *indices_)
      if (i < 0 || i >= size) throw ArgumentError(text("subset: index {} is outside a data set of {} samples", i, size));
  }
  /// Those of another subset, of as many samples.
  Subset(Data data, detail::SharedIndices indices, std::uint64_t split = 0)
      : data_(std::move(data)), indices_(indices), split_(split) {}

  std::int64_t size() const { return static_cast<std::int64_t>((*indices_).size()); }
  Extents sample_extents() const { return data_.sample_extents(); }
  Target target() const { return detail::target_of(data_); }
  std::vector<JoinedPart> parts() const requires HasParts<Data> { return data_.parts(); }
  NonFinite non_finite() const { return detail::non_finite_of(data_); }
  Normalization normalization() const requires HasNormalization<Data> { return data_.normalization(); }
  /// That of the whole set, and the split that chose the samples.
  Origin origin() const {
    Origin own = detail::origin_of(data_);
    own.split = split_;
    return own;
  }
  /// The same samples as data::normalize(set, mean, deviation) serves them.
  auto normalize(double mean, double deviation) const {
    auto whole = data::normalize(data_, mean, deviation);
    return Subset<decltype(whole)>(std::move(whole), indices_, split_);
  }

  template <class Scalar>
  requires Gives<Data, Scalar>
  void gather(Indices indices, Scalar* x, long pitch, std::int64_t epoch = 0) const {
    translate(indices, [&](Indices own, long done) { detail::gather_from(data_, own, x + done * pitch, pitch, epoch); });
  }
  void labels(Indices indices, std::int32_t* out) const requires gives_labels<Data> {
    translate(indices, [&](Indices own, long done) { detail::labels_from(data_, own, out + done * target().each); });
  }
  template <class Scalar> void targets(Indices indices, Scalar* y, long pitch) const requires gives_targets<Data> {
    translate(indices, [&](Indices own, long done) { detail::targets_from(data_, own, y + done * pitch, pitch); });
  }
  template <class Scalar>
  requires Gives<Data, Scalar>
  void serve(Indices indices, const Destination<Scalar>& to) const {
    translate(indices, [&](Indices own, long done) { detail::serve_from(data_, own, to.after(done, target().each)); });
  }

 private:
  /// In pieces on the stack: nothing is allocated for a batch.
  template <class Function> void translate(Indices indices, Function f) const {
    std::int64_t own[256];
    for (std::size_t done = 0; done < indices.size(); done += 256) {
      const std::size_t n = std::min<std::size_t>(256, indices.size() - done);
      for (std::size_t i = 0; i < n; ++i) own[i] = (*indices_)[static_cast<std::size_t>(indices[done + i])];
      f(Indices(own, n), static_cast<long>(done));
    }
  }

  Data data_;
  detail::SharedIndices indices_;
  std::uint64_t split_ = 0;  // not 0: split() chose them
};

/// Chosen samples of a data set, which is copied (or moved) into the result.
template <class Data> Subset<std::remove_cvref_t<Data>> subset(Data&& data, std::vector<std::int64_t> indices) {
  detail::assert_held<Data>();
  if constexpr (detail::can_be_held<Data>) return {std::forward<Data>(data), std::move(indices)};
  else std::abort();
}

/// The samples from `begin` to before `end`, as for a series whose end is the test. Throws ArgumentError where they are not
/// within the set.
template <class Data> Subset<std::remove_cvref_t<Data>> slice(Data&& data, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = static_cast<std::int64_t>(data.size());
  if (begin < 0 || end < begin || end > size)
    throw ArgumentError(text("slice: samples {} to {} of a data set of {} samples", begin, end, size));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return subset(std::forward<Data>(data), std::move(indices));
}

/// A random split in two: `auto [train, validation] = split(set, 0.9)`. Every sample is in one of them; the seed decides.
template <class Data> std::pair<Subset<Data>, Subset<Data>> split(const Data& data, double fraction, Seed seed = {}) {
  detail::assert_held<const Data&>();
  const std::int64_t size = static_cast<std::int64_t>(data.size()), head = detail::first_of_split(size, fraction);
  const Permutation order(size, seed, -1);
  std::vector<std::int64_t> first, second;
  first.reserve(static_cast<std::size_t>(head)), second.reserve(static_cast<std::size_t>(size - head));
  for (std::int64_t i = 0; i < size; ++i) (i < head ? first : second).push_back(order(i));
  if constexpr (prefers_ascending<Data>()) std::sort(first.begin(), first.end()), std::sort(second.begin(), second.end());
  if constexpr (detail::can_be_held<const Data&>) {
    const auto part = [&](std::vector<std::int64_t>&& own) {
      const std::uint64_t hash = detail::hash_of_split(own, detail::origin_of(data).split);
      return Subset<Data>(data, detail::SharedIndices(std::move(own)), hash);
    };
    return {part(std::move(first)), part(std::move(second))};
  } else {
    std::abort();
  }
}

}  // namespace skein::inline SKEIN_ABI::data
