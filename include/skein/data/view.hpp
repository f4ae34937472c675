// SPDX-License-Identifier: Apache-2.0
// A view of any data set without its type, so that loaders, trainers and their options are no templates over the data.
// A data set that has a name is referred to, one that is made in place is kept.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "normalization.hpp"
#include "origin.hpp"
#include "serve_from.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

namespace detail {
struct DatasetTable {
  void (*serve_float)(const void*, Indices, const Destination<float>&) = nullptr;
  void (*serve_double)(const void*, Indices, const Destination<double>&) = nullptr;
  void (*serve_tokens)(const void*, Indices, const Destination<std::int32_t>&) = nullptr;
  void (*targets_float)(const void*, Indices, float*, long) = nullptr;  // of samples that are tokens alone
  void (*targets_double)(const void*, Indices, double*, long) = nullptr;
  bool labels = false, targets = false;  // it can bring them
  bool prefers_threads = false, prefers_ascending = false;
};

template <class T> struct Erased {
  template <class Scalar> static void serve(const void* d, Indices i, const Destination<Scalar>& to) {
    serve_from(*static_cast<const T*>(d), i, to);
  }
  template <class Scalar> static void targets(const void* d, Indices i, Scalar* y, long pitch) {
    targets_from(*static_cast<const T*>(d), i, y, pitch);
  }
  static constexpr DatasetTable make() {
    DatasetTable t{.labels = gives_labels<T>, .targets = gives_targets<T>};
    t.prefers_threads = data::prefers_threads<T>(), t.prefers_ascending = data::prefers_ascending<T>();
    if constexpr (gives_numbers<T>)
      t.serve_float = &Erased::template serve<float>, t.serve_double = &Erased::template serve<double>;
    if constexpr (gives_tokens<T>) t.serve_tokens = &Erased::template serve<std::int32_t>;
    if constexpr (!gives_numbers<T> && HasTargets<T>)
      t.targets_float = &Erased::template targets<float>, t.targets_double = &Erased::template targets<double>;
    return t;
  }
  static constexpr DatasetTable table = make();
};

template <class T> inline constexpr bool can_be_kept = std::is_constructible_v<std::remove_const_t<T>, T&&>;
}  // namespace detail

/// Any data set, seen through function pointers (a call costs a nanosecond a batch, not a sample). Made implicitly from a data
/// set. One that has a name is not copied, and must outlive the view; one that is made in place, as in
/// `{.validate = from_tensors(x, y)}`, is moved into the view, whose copies share it. Empty by default: tests false.
class DatasetView {
 public:
  DatasetView() = default;
  /// Shares a data set that is kept. There is no other move: a view that was moved from still sees, and keeps, its data set.
  DatasetView(const DatasetView&) = default;
  DatasetView& operator=(const DatasetView&) = default;

  /// Takes size, extents and target as they are now. Refuses at compile time what is no data set; throws ArgumentError for a
  /// target that the type cannot give.
  template <class T>
  requires(!std::is_base_of_v<DatasetView, T>) DatasetView(const T& dataset) { see(dataset); }
  template <class T>
  requires(!std::is_reference_v<T> && !std::is_base_of_v<DatasetView, std::remove_const_t<T>>) DatasetView(T&& dataset) {
    using Set = std::remove_const_t<T>;
    if constexpr (Dataset<Set> && detail::can_be_kept<T>) {
      auto kept = std::make_shared<const Set>(std::forward<T>(dataset));
      see(*kept);
      kept_ = std::move(kept);
    } else {
      assert_dataset<Set>();
      static_assert(!Dataset<Set> || detail::can_be_kept<T>,
                    "this data set cannot be moved, so nothing can keep it: give it a name, and let it outlive what uses it");
    }
  }

  explicit operator bool() const { return object_ != nullptr; }
  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }
  /// Whether its values may be infinite or not a number, and who looks.
  NonFinite non_finite() const { return non_finite_; }
  /// What each of the sets that are joined in it gives; empty of one that is not joined.
  const std::vector<JoinedPart>& parts() const { return parts_; }
  /// How they are normalised already, as far as the set says it.
  const Normalization& normalization() const { return normalization_; }
  /// Where its samples come from, as far as the set says it.
  const Origin& origin() const { return origin_; }
  /// How a loader shall ask for its samples: on several threads, in ascending order of their indices.
  bool prefers_threads() const { return table_->prefers_threads; }
  bool prefers_ascending() const { return table_->prefers_ascending; }

  /// Can it bring samples as numbers; as tokens.
  bool gives_numbers() const { return table_ && table_->serve_float; }
  bool gives_tokens() const { return table_ && table_->serve_tokens; }
  /// The samples of a batch and what belongs to them, in one call. Throws ArgumentError where it does not give such.
  void serve(Indices indices, const Destination<float>& to) const {
    if (!gives_numbers()) [[unlikely]]
      return serve_targets(indices, to, table_ ? table_->targets_float : nullptr);
    table_->serve_float(object_, indices, to);
  }
  void serve(Indices indices, const Destination<double>& to) const {
    if (!gives_numbers()) [[unlikely]]
      return serve_targets(indices, to, table_ ? table_->targets_double : nullptr);
    table_->serve_double(object_, indices, to);
  }
  void serve(Indices indices, const Destination<std::int32_t>& to) const {
    if (!gives_tokens()) [[unlikely]]
      refuse("tokens");
    table_->serve_tokens(object_, indices, to);
  }
  /// Sample indices[i] to x + i * pitch; the gap behind a row is not touched. The epoch keys random augmentation.
  template <class Scalar> void gather(Indices indices, Scalar* x, long pitch, std::int64_t epoch = 0) const {
    serve(indices, Destination<Scalar>{.x = x, .pitch = pitch, .epoch = epoch});
  }
  /// Class numbers, target().each a sample; only where target().kind is label.
  void labels(Indices indices, std::int32_t* out) const {
    if (gives_numbers()) serve(indices, Destination<float>{.labels = out});
    else serve(indices, Destination<std::int32_t>{.labels = out});
  }
  /// Target vectors, to y + i * pitch; only where target().kind is vector.
  template <class Scalar> void targets(Indices indices, Scalar* y, long pitch) const {
    serve(indices, Destination<Scalar>{.targets = y, .target_pitch = pitch});
  }

 private:
  /// The targets alone, of samples that are tokens.
  template <class Scalar, class Targets>
  void serve_targets(Indices indices, const Destination<Scalar>& to, Targets targets) const {
    if (!targets || to.x || to.labels) refuse("numbers");
    if (to.targets) targets(object_, indices, to.targets, to.target_pitch);
  }
  template <class T> void see(const T& dataset) {
    assert_dataset<T>();
    if constexpr (Dataset<T>) {
      object_ = &dataset;
      table_ = &detail::Erased<T>::table;
      size_ = static_cast<std::int64_t>(dataset.size());
      sample_ = dataset.sample_extents();
      target_ = detail::target_of(dataset);
      non_finite_ = detail::non_finite_of(dataset);
      normalization_ = detail::normalization_of(dataset);
      origin_ = detail::origin_of(dataset);
      if constexpr (HasParts<T>) parts_ = dataset.parts();
      check();
    }
  }
  void check() const;
  /// Throws ArgumentError: there are no such samples.
  [[noreturn]] void refuse(const char* wanted) const;

  const void* object_ = nullptr;
  const detail::DatasetTable* table_ = nullptr;
  std::int64_t size_ = 0;
  Extents sample_{};
  Target target_{};
  NonFinite non_finite_ = NonFinite::refuse;
  std::vector<JoinedPart> parts_;
  Normalization normalization_;
  Origin origin_;
  std::shared_ptr<const void> kept_;  // a data set that was made in place
};

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "view.ipp"
#endif
