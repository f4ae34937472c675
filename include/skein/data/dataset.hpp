// SPDX-License-Identifier: Apache-2.0
// The data set concept: what a set of samples must offer so that a Loader can serve it, and the ladder that says in one
// sentence what a type lacks. A data set knows nothing of batches, ranks, epochs' orders or devices.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "../core/shape.hpp"

namespace skein::inline SKEIN_ABI::data {

/// What belongs to a sample: nothing, a class number, or a vector of numbers.
enum class TargetKind { none, label, vector };

/// The targets of a data set: their kind, and the number of classes or the length of the vector.
struct Target {
  TargetKind kind = TargetKind::none;
  int count = 0;                                          ///< classes of a label (0: not known), length of a vector
  static constexpr Target labels(int classes = 0) { return {TargetKind::label, classes}; }
  static constexpr Target vector(int length) { return {TargetKind::vector, length}; }
  friend constexpr bool operator==(const Target&, const Target&) = default;
};

/// Indices of samples within a data set.
using Indices = std::span<const std::int64_t>;

template <class T> concept HasSize = requires(const T& d) { { d.size() } -> std::convertible_to<std::int64_t>; };
template <class T> concept HasSampleExtents = requires(const T& d) { { d.sample_extents() } -> std::convertible_to<Extents>; };
template <class T> concept HasTarget = requires(const T& d) { { d.target() } -> std::convertible_to<Target>; };
template <class T> concept HasLabels = requires(const T& d, Indices i, std::int32_t* out) { d.labels(i, out); };
template <class T> concept HasTargets = requires(const T& d, Indices i, float* out, long pitch) { d.targets(i, out, pitch); };
/// Copies samples into the caller's rows; the form with an epoch is for random augmentation, keyed by (epoch, sample).
template <class T> concept Gathers =
    requires(const T& d, Indices i, float* x, long pitch) { d.gather(i, x, pitch); } ||
    requires(const T& d, Indices i, float* x, long pitch, std::int64_t epoch) { d.gather(i, x, pitch, epoch); };

/// A data set: `size()`, `sample_extents()` (of one sample, images as height, width, channels), `gather(indices, x, pitch)`,
/// which writes sample `indices[i]` to `x + i * pitch` (the values only, never the gap behind them), and, if it has targets,
/// `target()` with `labels(indices, out)` or `targets(indices, out, pitch)`. All of them const, and safe to call from several
/// threads at once. Overloads for `double*` are used where they exist.
template <class T> concept Dataset =
    HasSize<T> && HasSampleExtents<T> && Gathers<T> && (HasTarget<T> || !(HasLabels<T> || HasTargets<T>));

namespace detail {
template <class T> inline constexpr bool is_a_dataset = false;
}

/// Fails to compile, with one sentence, where T is no data set.
template <class T> consteval void assert_dataset() {
  if constexpr (!HasSize<T>)
    static_assert(detail::is_a_dataset<T>, "this is no data set: it lacks size() const, the number of samples");
  else if constexpr (!HasSampleExtents<T>)
    static_assert(detail::is_a_dataset<T>, "this is no data set: it lacks sample_extents() const, the Extents of one sample; "
                                           "vectors and spans become one by data::from_tensors(x, y)");
  else if constexpr (!Gathers<T>)
    static_assert(detail::is_a_dataset<T>, "this is no data set: it lacks gather(data::Indices, float* x, long pitch) const, "
                                           "which copies samples into rows of the caller");
  else if constexpr (!Dataset<T>)
    static_assert(detail::is_a_dataset<T>, "this data set has labels or targets but no target() const: let it return "
                                           "data::Target::labels(classes) or data::Target::vector(length)");
}

namespace detail {
/// Rows that hold n floats in their last 4n bytes become n doubles, in place and without other memory.
inline void widen_rows(double* x, long rows, long n, long pitch) {
  for (long i = 0; i < rows; ++i) {
    char* row = reinterpret_cast<char*>(x + i * pitch);
    for (long j = 0; j < n; ++j) {
      float narrow;
      std::memcpy(&narrow, row + 4 * n + 4 * j, 4);
      const double wide = narrow;
      std::memcpy(row + 8 * j, &wide, 8);
    }
  }
}

/// gather with whatever form T has: with or without epoch, in Scalar or by way of float.
template <class T, class Scalar> void gather_from(const T& d, Indices indices, Scalar* x, long pitch, std::int64_t epoch) {
  if constexpr (requires { d.gather(indices, x, pitch, epoch); }) {
    d.gather(indices, x, pitch, epoch);
  } else if constexpr (requires { d.gather(indices, x, pitch); }) {
    d.gather(indices, x, pitch);
  } else {
    const long n = Extents(d.sample_extents()).count();
    gather_from(d, indices, reinterpret_cast<float*>(x) + n, 2 * pitch, epoch);
    widen_rows(x, static_cast<long>(indices.size()), n, pitch);
  }
}

template <class T, class Scalar> void targets_from(const T& d, Indices indices, Scalar* y, long pitch) {
  if constexpr (requires { d.targets(indices, y, pitch); }) {
    d.targets(indices, y, pitch);
  } else {
    const long n = Target(d.target()).count;
    d.targets(indices, reinterpret_cast<float*>(y) + n, 2 * pitch);
    widen_rows(y, static_cast<long>(indices.size()), n, pitch);
  }
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data
