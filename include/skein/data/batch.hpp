// SPDX-License-Identifier: Apache-2.0
// What a Loader hands to a step: the staged samples of this rank, where they belong in the epoch, and nothing else. Plain
// pointers into the loader's memory, valid until the next batch is asked for.
#pragma once
#include <cstdint>
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../tensor/view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// The samples of one rank in one step, in memory of Device (a Loader's: the host's). `count` may be 0 on a rank that has none
/// left; the step is still taken by all ranks.
template <class Scalar = float, class Device = Cpu> struct Batch {
  using device = Device;
  const Scalar* x = nullptr;             ///< sample i at x + i * pitch; gaps are zero
  long pitch = 0;                        ///< sample_pitch(sample)
  Extents sample{};                      ///< extents of one sample
  const std::int32_t* labels = nullptr;  ///< class numbers, or null
  const Scalar* targets = nullptr;       ///< target i at targets + i * target_pitch, or null; gaps are zero
  long target_pitch = 0;                 ///< row_pitch(target_length)
  int target_length = 0;
  const std::int64_t* indices = nullptr;  ///< sample i's index in the data set
  long count = 0;                         ///< samples here
  long global_count = 0;                  ///< samples of this step over all ranks
  std::int64_t first = 0;                 ///< position of sample 0 in the epoch, over all ranks: keys dropout
  std::int64_t epoch = 0, step = 0;
  int held = 0;  ///< so many more batches may be asked for before these samples are overwritten

  const Scalar* row(long i) const { return x + i * pitch; }
  const Scalar* target(long i) const { return targets + i * target_pitch; }

  /// The samples as a tensor: (count, height, width, channels), (count, length), ... Throws ShapeError where Rank is not that of
  /// the samples plus one.
  template <int Rank> TensorView<const Scalar, Rank, Device> view() const {
    if (Rank != sample.rank + 1)
      throw ShapeError("batch: samples of rank " + std::to_string(sample.rank) + " make a tensor of rank " +
                       std::to_string(sample.rank + 1) + ", not of " + std::to_string(Rank));
    Dims<Rank> extents;
    extents[0] = count;
    for (int i = 1; i < Rank; ++i) extents[i] = sample[i - 1];
    Dims<Rank> strides = row_major(extents);
    strides[0] = pitch;
    return {x, extents, strides};
  }
  /// The target vectors as a matrix, (count, target_length).
  TensorView<const Scalar, 2, Device> target_view() const { return {targets, dims(count, target_length), dims(target_pitch, 1)}; }
};

}  // namespace skein::inline SKEIN_ABI::data
