// SPDX-License-Identifier: Apache-2.0
// A view of any data set without its type, so that loaders, trainers and their options are no templates over the data.
// It does not own: the data set must live as long as the view is used.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../core/error.hpp"
#include "dataset.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
struct DatasetTable {
  void (*gather_float)(const void*, Indices, float*, long, std::int64_t) = nullptr;
  void (*gather_double)(const void*, Indices, double*, long, std::int64_t) = nullptr;
  void (*labels)(const void*, Indices, std::int32_t*) = nullptr;
  void (*targets_float)(const void*, Indices, float*, long) = nullptr;
  void (*targets_double)(const void*, Indices, double*, long) = nullptr;
};

template <class T> struct Erased {
  template <class Scalar> static void gather(const void* d, Indices i, Scalar* x, long pitch, std::int64_t epoch) {
    gather_from(*static_cast<const T*>(d), i, x, pitch, epoch);
  }
  static void labels(const void* d, Indices i, std::int32_t* out) { static_cast<const T*>(d)->labels(i, out); }
  template <class Scalar> static void targets(const void* d, Indices i, Scalar* y, long pitch) {
    targets_from(*static_cast<const T*>(d), i, y, pitch);
  }
  static constexpr DatasetTable make() {
    DatasetTable t;
    t.gather_float = &Erased::template gather<float>;
    t.gather_double = &Erased::template gather<double>;
    if constexpr (HasLabels<T>) t.labels = &Erased::labels;
    if constexpr (HasTargets<T>) {
      t.targets_float = &Erased::template targets<float>;
      t.targets_double = &Erased::template targets<double>;
    }
    return t;
  }
  static constexpr DatasetTable table = make();
};
}  // namespace detail

/// Any data set, seen through function pointers (a call costs a nanosecond a batch, not a sample). Made implicitly from a data
/// set; does not own it. Empty by default: tests false.
class DatasetView {
 public:
  DatasetView() = default;

  /// Takes size, extents and target as they are now. Refuses at compile time what is no data set; throws ArgumentError for a
  /// target that the type cannot give.
  template <class T> requires(!std::is_base_of_v<DatasetView, T>) DatasetView(const T& dataset) {
    assert_dataset<T>();
    if constexpr (Dataset<T>) {
      object_ = &dataset;
      table_ = &detail::Erased<T>::table;
      size_ = static_cast<std::int64_t>(dataset.size());
      sample_ = dataset.sample_extents();
      if constexpr (HasTarget<T>) target_ = dataset.target();
      check();
    }
  }

  explicit operator bool() const { return object_ != nullptr; }
  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return sample_; }
  Target target() const { return target_; }

  /// Sample indices[i] to x + i * pitch; the gap behind a row is not touched. The epoch keys random augmentation.
  void gather(Indices indices, float* x, long pitch, std::int64_t epoch = 0) const {
    table_->gather_float(object_, indices, x, pitch, epoch);
  }
  void gather(Indices indices, double* x, long pitch, std::int64_t epoch = 0) const {
    table_->gather_double(object_, indices, x, pitch, epoch);
  }
  /// Class numbers; only where target().kind is label.
  void labels(Indices indices, std::int32_t* out) const { table_->labels(object_, indices, out); }
  /// Target vectors, to y + i * pitch; only where target().kind is vector.
  void targets(Indices indices, float* y, long pitch) const { table_->targets_float(object_, indices, y, pitch); }
  void targets(Indices indices, double* y, long pitch) const { table_->targets_double(object_, indices, y, pitch); }

 private:
  void check() const {
    if (size_ < 0) throw ArgumentError("a data set says that its size is negative");
    if (sample_.rank < 1 || sample_.rank > 4 || sample_.count() <= 0)
      throw ArgumentError("a data set's sample_extents() must have one to four positive extents");
    if (target_.kind == TargetKind::label && !table_->labels)
      throw ArgumentError("a data set says that its targets are labels, but has no labels(data::Indices, std::int32_t*) const");
    if (target_.kind == TargetKind::vector && !table_->targets_float)
      throw ArgumentError("a data set says that its targets are vectors, but has no targets(data::Indices, float*, long) const");
    if (target_.kind == TargetKind::vector && target_.count < 1)
      throw ArgumentError("a data set says that its targets are vectors, but gives no length: data::Target::vector(length)");
  }

  const void* object_ = nullptr;
  const detail::DatasetTable* table_ = nullptr;
  std::int64_t size_ = 0;
  Extents sample_{};
  Target target_{};
};

}  // namespace skein::inline SKEIN_ABI::data
