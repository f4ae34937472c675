// SPDX-License-Identifier: Apache-2.0
// A batch of the host where an executor wants it: as it is where the model is on the host too, else a blocking copy, for
// hand-written loops. (A training copies its batches ahead of the steps: train/cuda/batch_upload.hpp.)
#pragma once
#include <concepts>
#include <cstdint>
#include <vector>

#include "../core/shape.hpp"
#include "../device/batch_view.hpp"
#include "../device/copy.hpp"
#include "../device/memory.hpp"
#include "../ops/elementwise.hpp"
#include "loss/loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The rows that a model and its loss read.
template <class Model, class Loss> constexpr BatchRows batch_rows() {
  constexpr long values = Model::input::count, targets = target_length<Loss>(Model::sizes.output.count());
  return {values, is_tokens<typename Model::input> ? values : sample_pitch(Model::input::extents), targets, row_pitch(targets)};
}

/// Keeps the copy's memory, for the largest batch so far.
template <class Scalar, class Device> class BatchOnDevice {
 public:
  BatchOnDevice(Device where, const BatchRows& rows) : where_(where), rows_(rows) {}

  /// The batch where the model is: itself, or a copy that lives until the next call.
  template <class View> decltype(auto) operator()(const View& batch) {
    if constexpr (std::derived_from<View, BatchView<Scalar, Device>>) return static_cast<const BatchView<Scalar, Device>&>(batch);
    else return copied(batch);
  }

 private:
  BatchView<Scalar, Device> copied(const BatchView<Scalar>& batch) {
    const long pitch = rows_.packed(batch.pitch), target_pitch = rows_.packed_target(batch.target_pitch);
    return {.x = rows_there(x_, batch.x, batch.count, batch.pitch, pitch),
            .pitch = pitch,
            .labels = copy_there(labels_, batch.labels, batch.count * batch.labels_each),
            .targets = rows_there(targets_, batch.targets, batch.count, batch.target_pitch, target_pitch),
            .target_pitch = target_pitch,
            .count = batch.count,
            .global_count = batch.global_count,
            .first = batch.first,
            .labels_each = batch.labels_each,
            .tokens = copy_there(tokens_, batch.tokens, batch.count * batch.pitch)};
  }
  const Scalar* rows_there(Arena<Scalar, Device>& to, const Scalar* from, long n, long pitch, long packed) {
    if (!from || n <= 0 || pitch == packed) return copy_there(to, from, n * pitch);
    std::vector<Scalar> rows(static_cast<std::size_t>(n * packed));
    ops::copy_rows<Cpu>(rows.data(), packed, from, pitch, n, packed);
    return copy_there(to, rows.data(), n * packed);
  }
  template <class T> const T* copy_there(Arena<T, Device>& to, const T* from, long n) {
    if (!from || n <= 0) return from ? to.data() : nullptr;
    if (static_cast<long>(to.size()) < n) to = Arena<T, Device>(static_cast<std::size_t>(n), where_);
    Copy<Device, Cpu>::run(to.data(), from, static_cast<std::size_t>(n) * sizeof(T), where_);
    return to.data();
  }

  [[no_unique_address]] Device where_;
  BatchRows rows_;
  Arena<Scalar, Device> x_, targets_;
  Arena<std::int32_t, Device> labels_, tokens_;
};

}  // namespace skein::inline SKEIN_ABI::nn
