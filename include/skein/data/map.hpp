// SPDX-License-Identifier: Apache-2.0
// A data set whose samples are changed as they are gathered: augmentation, scaling, noise. The change is a pure function of the
// sample, its index and the epoch, so that it does not depend on ranks, threads or batches.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "normalization.hpp"
#include "origin.hpp"
#include "serve_from.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
template <class Function, class Scalar>
inline constexpr bool maps_sample = requires(const Function& f, std::span<Scalar> sample) {
  f(sample);
}
|| requires(const Function& f, std::span<Scalar> sample, std::int64_t i) { f(sample, i, i); };
}  // namespace detail

/// `data` with `function` applied to each sample in place. See map().
template <class Data, class Function> class Mapped {
 public:
  static constexpr bool prefers_threads = data::prefers_threads<Data>();
  static constexpr bool prefers_ascending = data::prefers_ascending<Data>();

  Mapped(Data data, Function function) : data_(std::move(data)), function_(std::move(function)) {
    assert_dataset<Data>();
    static_assert(detail::maps_sample<Function, float>,
                  "data::map takes a function of (std::span<float> sample) or (std::span<float> sample, std::int64_t index, "
                  "std::int64_t epoch) that is callable on a const object");
    static_assert(!HasNormalization<Function> || gives_numbers<Data>,
                  "data::map cannot normalize tokens: they are numbers of entries of a vocabulary, which a network of sk::Tokens "
                  "looks up");
    if constexpr (HasNormalization<Function>) detail::check_counts(function_.normalization(), data_.sample_extents());
  }

  std::int64_t size() const { return static_cast<std::int64_t>(data_.size()); }
  Extents sample_extents() const { return data_.sample_extents(); }
  Target target() const { return detail::target_of(data_); }
  std::vector<JoinedPart> parts() const requires HasParts<Data> { return data_.parts(); }
  Origin origin() const { return detail::origin_of(data_); }
  /// What a function makes of finite values need not be finite.
  NonFinite non_finite() const { return detail::non_finite_of(data_) == NonFinite::keep ? NonFinite::keep : NonFinite::refuse; }
  /// The normalization of the set, followed by the function where that is a normalization: a Normalization, NormalizeChannels, a
  /// Standardizer. With another function of the sample it is incomplete, and `keep` refuses it. A function that also takes the
  /// epoch is augmentation, and has no part in it.
  Normalization normalization() const requires(HasNormalization<Data> || HasNormalization<Function>) {
    Normalization all = detail::normalization_of(data_).then(detail::normalization_of(function_));
    all.whole = all.whole && (HasNormalization<Function> || augments);
    return all;
  }
  template <class Scalar>
  requires(Gives<Data, Scalar>&& detail::maps_sample<Function, Scalar>) void gather(Indices indices, Scalar* x, long pitch,
                                                                                    std::int64_t epoch = 0) const {
    detail::gather_from(data_, indices, x, pitch, epoch);
    change(indices, x, pitch, epoch);
  }
  void labels(Indices indices, std::int32_t* out) const requires gives_labels<Data> { detail::labels_from(data_, indices, out); }
  template <class Scalar> void targets(Indices indices, Scalar* y, long pitch) const requires gives_targets<Data> {
    detail::targets_from(data_, indices, y, pitch);
  }
  template <class Scalar>
  requires(Gives<Data, Scalar>&& detail::maps_sample<Function, Scalar>) void serve(Indices indices,
                                                                                   const Destination<Scalar>& to) const {
    detail::serve_from(data_, indices, to);
    if (to.x) change(indices, to.x, to.pitch, to.epoch);
  }

 private:
  static constexpr bool augments = requires(const Function& f, std::span<float> sample, std::int64_t i) { f(sample, i, i); };

  template <class Scalar> void change(Indices indices, Scalar* x, long pitch, std::int64_t epoch) const {
    const std::size_t n = static_cast<std::size_t>(Extents(data_.sample_extents()).count());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::span<Scalar> sample(x + static_cast<long>(i) * pitch, n);
      if constexpr (requires { function_(sample, indices[i], epoch); }) function_(sample, indices[i], epoch);
      else function_(sample);
    }
  }

  Data data_;
  Function function_;
};

/// Changes each sample in place as it is served: `function(sample)` or `function(sample, index, epoch)`, where sample is a
/// std::span<float> over its values (generic functions serve double too). It is called from the loader's thread: const, no shared
/// state. The data set is copied (or moved) into the result.
template <class Data, class Function> Mapped<std::remove_cvref_t<Data>, Function> map(Data&& data, Function function) {
  detail::assert_held<Data>();
  if constexpr (detail::can_be_held<Data>) return {std::forward<Data>(data), std::move(function)};
  else std::abort();
}

}  // namespace skein::inline SKEIN_ABI::data
