// SPDX-License-Identifier: Apache-2.0
// The data set concept: what a set of samples must offer so that a Loader can serve it, and the ladder that says in one
// sentence what a type lacks. A data set knows nothing of batches, ranks, epochs' orders or devices.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "../core/shape.hpp"
#include "../core/target_kind.hpp"

namespace skein::inline SKEIN_ABI::data {

using skein::TargetKind;

/// The targets of a data set: their kind, and the number of classes or the length of the vector.
struct Target {
  TargetKind kind = TargetKind::none;
  int count = 0;  ///< classes of a label (0: not known), length of a vector
  int each = 1;   ///< labels a sample: one, or one a position
  static constexpr Target labels(int classes = 0, int each = 1) { return {TargetKind::label, classes, each}; }
  static constexpr Target vector(int length) { return {TargetKind::vector, length}; }
  friend constexpr bool operator==(const Target&, const Target&) = default;
};

/// Values that are infinite or not a number. refuse: a Loader looks at each batch, and throws where there is one. absent: there
/// are none, somebody has looked. keep: they are wanted.
enum class NonFinite { refuse, absent, keep };

/// Stands where a data set shall write a label, so that one that is left out is no class.
inline constexpr std::int32_t unwritten_label = INT32_MIN;

/// Indices of samples within a data set.
using Indices = std::span<const std::int64_t>;

/// T says how many samples it has: size().
template <class T> concept HasSize = requires(const T& d) {
  { d.size() } -> std::convertible_to<std::int64_t>;
};
/// T says which extents a sample has: sample_extents().
template <class T> concept HasSampleExtents = requires(const T& d) {
  { d.sample_extents() } -> std::convertible_to<Extents>;
};
/// T says what it has beside the samples: target().
template <class T> concept HasTarget = requires(const T& d) {
  { d.target() } -> std::convertible_to<Target>;
};
/// T says what is known of infinite values and of those that are no numbers: non_finite(). Without it a Loader looks.
template <class T> concept HasNonFinite = requires(const T& d) {
  { d.non_finite() } -> std::convertible_to<NonFinite>;
};
template <class T> concept HasLabels = requires(const T& d, Indices i, std::int32_t* out) { d.labels(i, out); };
template <class T> concept HasTargets = requires(const T& d, Indices i, float* out, long pitch) { d.targets(i, out, pitch); };
/// One of several data sets side by side: its samples, and what belongs to them.
struct JoinedPart {
  Extents sample{};
  Target target{};
};
/// T is made of several data sets side by side, and says what each gives, in their order: parts().
template <class T> concept HasParts = requires(const T& d) {
  { d.parts() } -> std::same_as<std::vector<JoinedPart>>;
};
/// Copies samples into the caller's rows; the form with an epoch is for random augmentation, keyed by (epoch, sample).
template <class T> concept Gathers = requires(const T& d, Indices i, float* x, long pitch) { d.gather(i, x, pitch); }
|| requires(const T& d, Indices i, float* x, long pitch, std::int64_t epoch) { d.gather(i, x, pitch, epoch); };

/// Brings one sample and what belongs to it in one call, from wherever it is: x has sample_extents().count() values, and beside
/// it is a label, a target vector of target().count values, or nothing.
template <class T> concept ReadsLabelled = requires(const T& d, std::int64_t i, std::span<float> x, std::int32_t& label) {
  d.read(i, x, label);
};
/// Brings one sample and its target().each labels in one call.
template <class T>
concept ReadsManyLabels = requires(const T& d, std::int64_t i, std::span<float> x, std::span<std::int32_t> labels) {
  d.read(i, x, labels);
};
template <class T> concept ReadsTargets = requires(const T& d, std::int64_t i, std::span<float> x) { d.read(i, x, x); };
/// T reads one sample on demand, read(i, x), with its label or target where it has such.
template <class T> concept ReadsSamples = ReadsLabelled<T> || ReadsManyLabels<T> || ReadsTargets<T> ||
    requires(const T& d, std::int64_t i, std::span<float> x) {
  d.read(i, x);
};

/// Where the samples of a batch go, and what belongs to them; null: not wanted.
template <class Scalar> struct Destination {
  Scalar* x = nullptr;  ///< sample i at x + i * pitch; the gap behind it is not touched
  long pitch = 0;
  std::int32_t* labels = nullptr;  ///< only where the data set has labels; those of sample i at labels + i * target().each
  Scalar* targets = nullptr;       ///< only where it has target vectors, at targets + i * target_pitch
  long target_pitch = 0;
  std::int64_t epoch = 0;  ///< keys random augmentation

  /// That of the samples from `done` on, with so many labels each.
  constexpr Destination after(long done, long labels_each = 1) const {
    return {x ? x + done * pitch : x,
            pitch,
            labels ? labels + done * labels_each : labels,
            targets ? targets + done * target_pitch : targets,
            target_pitch,
            epoch};
  }
};
/// T says that its samples take time to bring, so that several threads of a loader are worth while: static constexpr bool
/// prefers_threads. Without it those do that bring samples on demand, by read() or serve() alone.
template <class T> concept HasPrefersThreads = requires {
  { T::prefers_threads } -> std::convertible_to<bool>;
};
/// T says that a loader shall ask for the samples of a batch in ascending order of their indices: static constexpr bool
/// prefers_ascending.
template <class T> concept HasPrefersAscending = requires {
  { T::prefers_ascending } -> std::convertible_to<bool>;
};
namespace detail {
/// A row of tokens, from which a template of any samples deduces nothing: that it is one says nothing of tokens.
struct TokenRow {
  operator std::int32_t*() const;
};
}  // namespace detail
/// Copies samples that are tokens, and is told the epoch, as Gathers may be.
template <class T>
concept GathersTokensOfEpoch = requires(const T& d, Indices i, detail::TokenRow x, long pitch, std::int64_t epoch) {
  d.gather(i, x, pitch, epoch);
}
|| (HasParts<T> &&
    requires(const T& d, Indices i, std::int32_t* x, long pitch, std::int64_t epoch) { d.gather(i, x, pitch, epoch); });
/// Copies samples that are tokens, as 32-bit integers.
template <class T> concept GathersTokens = GathersTokensOfEpoch<T> ||
    requires(const T& d, Indices i, std::int32_t* x, long pitch) {
  d.gather(i, x, pitch);
};
/// Serves tokens and their labels in one call.
template <class T> concept ServesTokens = requires(const T& d, Indices i, const Destination<std::int32_t>& to) {
  d.serve(i, to);
};
/// Brings the samples of a batch and what belongs to them in one call.
template <class T> concept Serves = requires(const T& d, Indices i, const Destination<float>& to) { d.serve(i, to); };

/// Whether a data set can bring its samples as numbers, or as tokens.
template <class T> inline constexpr bool gives_numbers = Gathers<T> || ReadsSamples<T> || Serves<T>;
template <class T> inline constexpr bool gives_tokens = GathersTokens<T> || ServesTokens<T>;
/// Whether a data set can bring its samples as Scalar: float, double, or std::int32_t for tokens.
template <class T, class Scalar> concept Gives = (std::same_as<Scalar, std::int32_t> && gives_tokens<T>) ||
                                                 (!std::same_as<Scalar, std::int32_t> && gives_numbers<T>);

/// A data set: `size()`, `sample_extents()` (of one sample, images as height, width, channels), `target()` if it has targets, and
/// one of
/// - `gather(indices, x, pitch)`, which writes sample `indices[i]` to `x + i * pitch` (the values only, never the gap behind
/// them), with
///   `labels(indices, out)`, which writes target().each labels a sample one behind the other, or `targets(indices, out, pitch)`;
/// - `read(index, std::span<float> x, std::int32_t& label)`, or with `std::span<std::int32_t> labels`, or with
///   `std::span<float> target`: one sample, for sets that are on a disk;
/// - `serve(indices, Destination<float>)`: a batch in one call.
/// Samples that are tokens (Tokens<T>) come by gather(indices, std::int32_t* x, pitch), which may take the epoch too, with labels
/// or targets as above, or by serve(indices, Destination<std::int32_t>). All of them const, and safe to call from several threads
/// at once. Overloads for double are used where they exist. A set may say more: `data::NonFinite non_finite() const`, where its
/// values may be infinite or not a number; `static constexpr bool prefers_threads`, `prefers_ascending`, how a loader shall ask
/// for samples.
template <class T> concept Dataset = HasSize<T> && HasSampleExtents<T> &&
    (gives_numbers<T> || gives_tokens<T>)&&(HasTarget<T> || !(HasLabels<T> || HasTargets<T> || ReadsLabelled<T> ||
                                                              ReadsManyLabels<T> || ReadsTargets<T>));

/// Whether a data set can bring labels, or target vectors.
template <class T> inline constexpr bool gives_labels = HasLabels<T> || ReadsLabelled<T> || ReadsManyLabels<T> ||
                                                        (Serves<T> && !Gathers<T>) || (ServesTokens<T> && !GathersTokens<T>);
template <class T> inline constexpr bool gives_targets = HasTargets<T> || ReadsTargets<T> || (Serves<T> && !Gathers<T>);

class Table;
namespace detail {
template <class T> inline constexpr bool is_a_dataset = false;
}

/// Fails to compile, with one sentence, where T is no data set.
template <class T> consteval void assert_dataset() {
  if constexpr (std::same_as<T, Table>)
    static_assert(detail::is_a_dataset<T>,
                  "a Table is no data set, since its columns may be texts or missing: a TableEncoder makes one, "
                  "encoder.fit(training).encode(training)");
  else if constexpr (std::is_arithmetic_v<T>)
    static_assert(
        detail::is_a_dataset<T>,
        "a number is no data set, as .validate takes one: auto [train, rest] = sk::data::split(set, 0.8), and .validate = "
        "rest");
  else if constexpr (!HasSize<T>)
    static_assert(detail::is_a_dataset<T>, "this is no data set: it lacks size() const, the number of samples");
  else if constexpr (!HasSampleExtents<T>)
    static_assert(detail::is_a_dataset<T>,
                  "this is no data set: it lacks sample_extents() const, the Extents of one sample; "
                  "vectors and spans become one by data::from_tensors(x, y)");
  else if constexpr (!gives_numbers<T> && !gives_tokens<T>)
    static_assert(detail::is_a_dataset<T>,
                  "this is no data set: it lacks gather(data::Indices, float* x, long pitch) const, which copies "
                  "samples into rows of the caller, or read(std::int64_t index, std::span<float> x, "
                  "std::int32_t& label) const, which brings one");
  else if constexpr (!Dataset<T>)
    static_assert(detail::is_a_dataset<T>,
                  "this data set has labels or targets but no target() const: let it return "
                  "data::Target::labels(classes) or data::Target::vector(length)");
}

namespace detail {
/// Whether a set that is given as T can be kept in another one: moved, or copied where it has a name.
template <class T> inline constexpr bool can_be_held = std::constructible_from<std::remove_cvref_t<T>, T>;
template <class T> consteval void assert_held() {
  static_assert(can_be_held<T>,
                "split, subset, slice, map and join keep a copy of a data set that has a name, and this one cannot be copied: "
                "let it hold its arrays, such as a Tensor, by a std::shared_ptr");
}
}  // namespace detail

template <class T> constexpr bool prefers_threads() {
  if constexpr (HasPrefersThreads<T>) return T::prefers_threads;
  else return ReadsSamples<T> || (Serves<T> && !Gathers<T>);
}
template <class T> constexpr bool prefers_ascending() {
  if constexpr (HasPrefersAscending<T>) return T::prefers_ascending;
  else return false;
}

}  // namespace skein::inline SKEIN_ABI::data
