// SPDX-License-Identifier: Apache-2.0
// The samples that one call computes with: BatchView, plain pointers into memory of a device, and the concept of what can be
// seen as one. A loader's batch, a micro-batch of a pipeline and a batch's copy on a GPU are all this.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "../core/text.hpp"
#include "device.hpp"

namespace skein::inline SKEIN_ABI {

/// The samples of one rank in one call, in memory of Device that somebody else owns. `count` may be 0 on a rank that has none
/// left.
template <class Scalar = float, class Device = Cpu> struct BatchView {
  using device = Device;
  const Scalar* x = nullptr;             ///< sample i at x + i * pitch; gaps may hold anything
  long pitch = 0;                        ///< sample_pitch(sample)
  const std::int32_t* labels = nullptr;  ///< class numbers, or null: those of sample i at labels + i * labels_each
  const Scalar* targets = nullptr;       ///< target i at targets + i * target_pitch, or null; gaps are zero
  long target_pitch = 0;                 ///< row_pitch(target_length)
  long count = 0;                        ///< samples here
  long global_count = 0;                 ///< samples of this step over all ranks
  std::int64_t first = 0;                ///< position of sample 0 in the epoch, over all ranks: keys dropout
  int held = 0;                          ///< so many more batches may be asked for before these samples are overwritten
  long labels_each = 1;                  ///< labels a sample: one, or one a position of it
  const std::int32_t* tokens = nullptr;  ///< where the network takes such, in place of x: sample i at tokens + i * pitch, dense

  const Scalar* row(long i) const { return x + i * pitch; }
  const Scalar* target(long i) const { return targets + i * target_pitch; }
  /// Samples [begin, end) of this batch.
  BatchView part(long begin, long end) const {
    BatchView p = *this;
    if (x) p.x = row(begin);
    if (tokens) p.tokens = tokens + begin * pitch;
    if (labels) p.labels = labels + begin * labels_each;
    if (targets) p.targets = target(begin);
    p.count = end - begin;
    p.first = first + begin;
    return p;
  }
};

/// How a model reads the rows of a batch. Rows that are farther apart lie in a wider array, which may end with the values of the
/// last one: they are packed where they are copied.
struct BatchRows {
  long values = 0, pitch = 0;                ///< of a sample, and as far apart as samples of the model's own are
  long target_values = 0, target_pitch = 0;  ///< the same of targets
  constexpr long packed(long given) const { return given > pitch ? values : given; }
  constexpr long packed_target(long given) const { return given > target_pitch ? target_values : given; }
};

/// What messages call the samples of a batch: by their indices in a data set where a batch says them, else by their places in it.
struct SampleNames {
  const std::int64_t* indices = nullptr;  ///< of each sample, in the set
  const char* set = nullptr;              ///< "the training data set"
  std::string operator()(long i) const {
    return text("sample {}{}", indices ? indices[i] : i, (set ? std::string(" of ") + set : std::string()));
  }
};
/// A batch that says which samples of which set it has, as a loader's does.
template <class T> concept NamesSamples = requires(const T& b) {
  { b.indices } -> std::convertible_to<const std::int64_t*>;
  { b.set } -> std::convertible_to<const char*>;
};
/// The names of a batch's samples; none where it says none.
template <class T> constexpr SampleNames names_of(const T& batch) {
  if constexpr (NamesSamples<T>) return {batch.indices, batch.set};
  else return {};
}

/// What can be computed with by a model of this scalar: members of a BatchView. Most derive from that (data::Batch); one that
/// does not has numbers, and one label a sample.
template <class T, class Scalar> concept Batch = requires(const T& b) {
  { b.x } -> std::convertible_to<const Scalar*>;
  { b.targets } -> std::convertible_to<const Scalar*>;
  { b.labels } -> std::convertible_to<const std::int32_t*>;
  { b.pitch } -> std::convertible_to<long>;
  { b.target_pitch } -> std::convertible_to<long>;
  { b.count } -> std::convertible_to<long>;
  { b.global_count } -> std::convertible_to<long>;
  { b.first } -> std::convertible_to<std::int64_t>;
  { b.held } -> std::convertible_to<int>;
};

namespace detail {
template <class T> concept HasBatchMembers = requires(const T& b) {
  b.x, b.targets, b.labels, b.pitch, b.target_pitch, b.count, b.global_count, b.first, b.held;
};
template <class T, class Scalar> inline constexpr bool is_a_batch = skein::Batch<T, Scalar>;
}  // namespace detail

/// Refuses, with one sentence, what is no batch for a model of this scalar on Device.
template <class T, class Scalar, class Device = DeviceOf<T>> consteval void assert_batch() {
  if constexpr (!detail::HasBatchMembers<T>)
    static_assert(detail::is_a_batch<T, Scalar>,
                  "a batch has x, pitch, labels, targets, target_pitch, count, global_count, first and held: derive it from "
                  "skein::BatchView<Scalar>, or fill one of those");
  else if constexpr (!Batch<T, Scalar>)
    static_assert(
        detail::is_a_batch<T, Scalar>,
        "a batch's samples and targets are of the model's scalar, its labels 32-bit integers: read the data as that, or "
        "give Model the data's scalar");
  else
    static_assert(on_host<DeviceOf<T>> || std::same_as<DeviceOf<T>, Device>,
                  "the batch is in a device's memory and the model is not there: give Model the batch's device");
}

/// A batch for a model of this scalar on Device, as a view: its own base, or made of its members. Refuses, with one sentence,
/// what is none.
template <class Scalar, class Device, class T> constexpr decltype(auto) batch_view(const T& b) {
  using View = BatchView<Scalar, DeviceOf<T>>;
  assert_batch<T, Scalar, Device>();
  if constexpr (!Batch<T, Scalar>) return View{};
  else if constexpr (std::derived_from<T, View>) return static_cast<const View&>(b);
  else return View{b.x, b.pitch, b.labels, b.targets, b.target_pitch, b.count, b.global_count, b.first, b.held};
}

}  // namespace skein::inline SKEIN_ABI
