// SPDX-License-Identifier: Apache-2.0
// How a data set is asked, whichever of the forms of dataset.hpp it has: what wraps a set, and the view of any set, ask by these.
// Each calls the first of its column that the set has. "as floats": in the memory of the doubles, which are then widened in
// place.
//
//   asked for       floats                       doubles                                      tokens
//   serve_from      serve                        serve of doubles                             serve of tokens
//                   read, a sample a call        serve or read, as floats, where it has       gather of tokens, and labels_from;
//                   gather_from, labels_from,      read, or serve and no gather               targets by targets_from alone
//                     and targets_from           gather_from, labels_from and targets_from
//   gather_from     gather, told the epoch       gather of doubles, told the epoch or not     serve_from
//                   gather                       gather, as floats
//                   serve_from                   serve_from
//   targets_from    targets                      targets of doubles
//                   serve_from                   targets, as floats
//                                                serve_from
//   labels_from     labels; else serve_from, of floats where the set gives numbers, of tokens where it gives those alone
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "dataset.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
template <class T> Target target_of(const T& d) {
  if constexpr (HasTarget<T>) return d.target();
  else return {};
}
template <class T> NonFinite non_finite_of(const T& d) {
  if constexpr (HasNonFinite<T>) return d.non_finite();
  else return NonFinite::refuse;
}

/// Marks the ends of what a set of the user's shall write, so that values that it leaves out are seen by who looks for numbers
/// that are not finite, and are no remains of another batch.
template <class Scalar> void mark_unwritten(Scalar* values, long n) {
  if (n > 0) values[0] = values[n - 1] = std::numeric_limits<Scalar>::quiet_NaN();
}
inline void mark_unwritten(std::int32_t* labels, long n) {
  if (n > 0) labels[0] = labels[n - 1] = unwritten_label;
}

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

/// The first and the last of rows of n values.
template <class Scalar> void mark_rows(Scalar* rows, Indices indices, long n, long pitch) {
  if (indices.empty()) return;
  mark_unwritten(rows, n);
  mark_unwritten(rows + static_cast<long>(indices.size() - 1) * pitch, n);
}

template <class T, class Scalar> void serve_from(const T& d, Indices indices, const Destination<Scalar>& to);
template <class T> void labels_from(const T& d, Indices indices, std::int32_t* out);

/// Samples that are tokens, and their labels.
template <class T> void serve_from(const T& d, Indices indices, const Destination<std::int32_t>& to) {
  if constexpr (ServesTokens<T>) {
    d.serve(indices, to);
  } else {
    if constexpr (GathersTokensOfEpoch<T>) {
      if (to.x) d.gather(indices, to.x, to.pitch, to.epoch);
    } else {
      if (to.x) d.gather(indices, to.x, to.pitch);
    }
    if constexpr (HasLabels<T>)
      if (to.labels) labels_from(d, indices, to.labels);
  }
}
template <class T> void gather_from(const T& d, Indices indices, std::int32_t* x, long pitch, std::int64_t epoch) {
  serve_from(d, indices, Destination<std::int32_t>{.x = x, .pitch = pitch, .epoch = epoch});
}

/// Samples with whatever form T has: with or without epoch, in Scalar or by way of float.
template <class T, class Scalar> void gather_from(const T& d, Indices indices, Scalar* x, long pitch, std::int64_t epoch) {
  if constexpr (!HasNonFinite<T>) mark_rows(x, indices, Extents(d.sample_extents()).count(), pitch);
  if constexpr (requires { d.gather(indices, x, pitch, epoch); }) {
    d.gather(indices, x, pitch, epoch);
  } else if constexpr (requires { d.gather(indices, x, pitch); }) {
    d.gather(indices, x, pitch);
  } else if constexpr (Gathers<T>) {
    const long n = Extents(d.sample_extents()).count();
    gather_from(d, indices, reinterpret_cast<float*>(x) + n, 2 * pitch, epoch);
    widen_rows(x, static_cast<long>(indices.size()), n, pitch);
  } else {
    serve_from(d, indices, Destination<Scalar>{.x = x, .pitch = pitch, .epoch = epoch});
  }
}

template <class T> void labels_from(const T& d, Indices indices, std::int32_t* out) {
  if constexpr (HasLabels<T> && !HasNonFinite<T>)
    mark_unwritten(out, static_cast<long>(indices.size()) * Target(d.target()).each);
  if constexpr (HasLabels<T>) d.labels(indices, out);
  else if constexpr (!gives_numbers<T>) serve_from(d, indices, Destination<std::int32_t>{.labels = out});
  else serve_from(d, indices, Destination<float>{.labels = out});
}

template <class T, class Scalar> void targets_from(const T& d, Indices indices, Scalar* y, long pitch) {
  if constexpr (HasTargets<T> && !HasNonFinite<T>) mark_rows(y, indices, Target(d.target()).count, pitch);
  if constexpr (requires { d.targets(indices, y, pitch); }) {
    d.targets(indices, y, pitch);
  } else if constexpr (HasTargets<T>) {
    const long n = Target(d.target()).count;
    if constexpr (!HasNonFinite<T>) mark_rows(reinterpret_cast<float*>(y) + n, indices, n, 2 * pitch);
    d.targets(indices, reinterpret_cast<float*>(y) + n, 2 * pitch);
    widen_rows(y, static_cast<long>(indices.size()), n, pitch);
  } else {
    serve_from(d, indices, Destination<Scalar>{.targets = y, .target_pitch = pitch});
  }
}

/// One read a sample; what is not wanted goes to memory of this call.
template <class T> void read_each(const T& d, Indices indices, const Destination<float>& to) {
  const std::size_t n = static_cast<std::size_t>(Extents(d.sample_extents()).count());
  std::size_t length = 0;
  if constexpr (ReadsTargets<T>) length = static_cast<std::size_t>(Target(d.target()).count);
  if constexpr (ReadsManyLabels<T>) length = static_cast<std::size_t>(Target(d.target()).each);
  std::vector<float> unwanted((to.x ? 0 : n) + (to.targets ? 0 : length));
  std::vector<std::int32_t> unwanted_labels(ReadsManyLabels<T> && !to.labels ? length : 0);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::span<float> x(to.x ? to.x + static_cast<long>(i) * to.pitch : unwanted.data(), n);
    mark_unwritten(x.data(), static_cast<long>(n));
    if constexpr (ReadsLabelled<T>) {
      std::int32_t label = unwritten_label;
      d.read(indices[i], x, label);
      if (to.labels) to.labels[i] = label;
    } else if constexpr (ReadsManyLabels<T>) {
      std::int32_t* const labels = to.labels ? to.labels + i * length : unwanted_labels.data();
      mark_unwritten(labels, static_cast<long>(length));
      d.read(indices[i], x, std::span<std::int32_t>(labels, length));
    } else if constexpr (ReadsTargets<T>) {
      float* const y = to.targets ? to.targets + static_cast<long>(i) * to.target_pitch : unwanted.data() + (to.x ? 0 : n);
      mark_unwritten(y, static_cast<long>(length));
      d.read(indices[i], x, std::span<float>(y, length));
    } else {
      d.read(indices[i], x);
    }
  }
}
/// By way of float, in the memory of the doubles.
template <class T> void serve_widened(const T& d, Indices indices, const Destination<double>& to) {
  const long n = Extents(d.sample_extents()).count(), rows = static_cast<long>(indices.size());
  long length = 0;
  if constexpr (HasTarget<T>) length = Target(d.target()).count;
  serve_from(
      d, indices,
      Destination<float>{to.x ? reinterpret_cast<float*>(to.x) + n : nullptr, 2 * to.pitch, to.labels,
                         to.targets ? reinterpret_cast<float*>(to.targets) + length : nullptr, 2 * to.target_pitch, to.epoch});
  if (to.x) widen_rows(to.x, rows, n, to.pitch);
  if (to.targets) widen_rows(to.targets, rows, length, to.target_pitch);
}

/// Samples and what belongs to them, in one call where T has such a one.
template <class T, class Scalar> void serve_from(const T& d, Indices indices, const Destination<Scalar>& to) {
  if constexpr (requires { d.serve(indices, to); }) {
    d.serve(indices, to);
  } else if constexpr (std::is_same_v<Scalar, double> && (ReadsSamples<T> || (Serves<T> && !Gathers<T>))) {
    serve_widened(d, indices, to);
  } else if constexpr (ReadsSamples<T>) {
    read_each(d, indices, to);
  } else {
    if (to.x) gather_from(d, indices, to.x, to.pitch, to.epoch);
    if constexpr (HasLabels<T>)
      if (to.labels) labels_from(d, indices, to.labels);
    if constexpr (HasTargets<T>)
      if (to.targets) targets_from(d, indices, to.targets, to.target_pitch);
  }
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data
