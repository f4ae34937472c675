// SPDX-License-Identifier: Apache-2.0
// Brings batches to a GPU while it still computes the step before: two slots in its memory, filled by a stream of their own.
// A batch that stays as it is long enough (a trainer's loader, page-locked) is copied from where it lies; any other one goes
// through page-locked memory here.
#pragma once
#include <algorithm>
#include <array>
#include <string>

#include "../../data/host_memory.hpp"
#include "../../device/batch_view.hpp"
#include "../../device/cuda/memory.hpp"
#include "../../device/cuda/pinned.hpp"
#include "../../ops/cuda/elementwise.hpp"
#include "../step/step_device.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Two slots of device memory for batches of the host: one is copied while the step before reads the other.
template <class Scalar> class BatchUpload {
 public:
  static constexpr int held = 2;  // as many as there are slots
  static data::HostMemory host_memory() {
    return {.allocate = [](std::size_t bytes) -> void* {
              void* p = nullptr;
              cuda::check(cudaMallocHost(&p, bytes), "cudaMallocHost", cuda::Bytes{bytes});
              return p;
            },
            .release = [](void* p, std::size_t) { cuda::ignore(cudaFreeHost(p)); }};
  }

  BatchUpload(Cuda where, const BatchRows& rows) : where_(where), rows_(rows) {}

  /// Do batches of so many values have room? Where not, reserve() makes it.
  bool has_room(const BatchRoom& n) const {
    return stream_ && n.x <= room_.x && n.tokens <= room_.tokens && n.labels <= room_.labels && n.targets <= room_.targets;
  }
  /// Memory moves: what was captured with it is void. Where there is not so much, no batch has room, and smaller ones may be
  /// asked for. Throws DeviceError.
  void reserve(const BatchRoom& n) {
    const BatchRoom room{.x = std::max(n.x, room_.x),
                         .tokens = std::max(n.tokens, room_.tokens),
                         .labels = std::max(n.labels, room_.labels),
                         .targets = std::max(n.targets, room_.targets)};
    const cuda::UseDevice here(where_);
    if (slots_[0].copy) cuda::synchronize(where_);
    room_ = {};
    for (Slot& s : slots_) {
      if (!s.copy) s.copy = std::make_unique<Events>();
      s.x = Arena<Scalar, Cuda>(static_cast<std::size_t>(room.x), where_);
      s.tokens = Arena<std::int32_t, Cuda>(static_cast<std::size_t>(room.tokens), where_);
      s.labels = Arena<std::int32_t, Cuda>(static_cast<std::size_t>(room.labels), where_);
      s.targets = Arena<Scalar, Cuda>(static_cast<std::size_t>(room.targets), where_);
      s.copy->free.record(cuda::stream(where_));
    }
    if (!stream_) stream_ = std::make_unique<cuda::Stream>();
    room_ = room;
  }

  /// The batch in that slot, 0 or 1, with its rows packed; the current device is where(). The calling thread's stream has it when
  /// what follows runs there. Waits only where the host is a whole ring of slots ahead.
  BatchView<Scalar, Cuda> upload(const BatchView<Scalar>& batch, std::size_t slot) {
    Slot& s = slots_[last_ = slot];
    Events& e = *s.copy;
    if (e.pending && !e.copied.done()) e.copied.synchronize();
    e.pending = true;
    const BatchRoom n = room_for(batch);
    const bool keeps = batch.held < held || is_wide(batch);
    if (keeps) keep(s, batch, n);
    e.free.hold(stream_->get());
    send(s.x.data(), keeps ? s.kept_x.data() : batch.x, n.x);
    send(s.tokens.data(), keeps ? s.kept_tokens.data() : batch.tokens, n.tokens);
    send(s.labels.data(), keeps ? s.kept_labels.data() : batch.labels, n.labels);
    send(s.targets.data(), keeps ? s.kept_targets.data() : batch.targets, n.targets);
    e.copied.record(stream_->get());
    e.copied.hold(cuda::stream(where_));
    return in_slot(s, batch);
  }
  /// The same of a batch that is on the device: copied in the calling thread's stream.
  BatchView<Scalar, Cuda> upload(const BatchView<Scalar, Cuda>& batch, std::size_t slot) {
    Slot& s = slots_[last_ = slot];
    const BatchRoom n = room_for(batch);
    const long pitch = rows_.packed(batch.pitch), target_pitch = rows_.packed_target(batch.target_pitch);
    if (n.x > 0) ops::copy_rows<Cuda>(s.x.data(), pitch, batch.x, batch.pitch, batch.count, pitch);
    ops::copy<Cuda>(s.tokens.data(), batch.tokens, n.tokens);
    ops::copy<Cuda>(s.labels.data(), batch.labels, n.labels);
    if (n.targets > 0)
      ops::copy_rows<Cuda>(s.targets.data(), target_pitch, batch.targets, batch.target_pitch, batch.count, target_pitch);
    s.copy->free.record(cuda::stream(where_));  // by finish() once more: where that is not called, another copy waits for these
    return in_slot(s, batch);
  }
  /// What the last upload() gave is not needed by anything that comes later.
  void finish() { slots_[last_].copy->free.record(cuda::stream(where_)); }

  /// Values of a batch with its rows packed.
  template <class Device> BatchRoom room_for(const BatchView<Scalar, Device>& batch) const {
    return {.x = batch.tokens ? 0 : batch.count * rows_.packed(batch.pitch),
            .tokens = batch.tokens ? batch.count * batch.pitch : 0,
            .labels = batch.labels ? batch.count * batch.labels_each : 0,
            .targets = batch.targets ? batch.count * rows_.packed_target(batch.target_pitch) : 0};
  }

 private:
  struct Events {
    cuda::Event copied, free;
    bool pending = false;
  };
  struct Slot {
    Arena<Scalar, Cuda> x, targets;
    Arena<std::int32_t, Cuda> tokens, labels;
    cuda::Pinned<Scalar> kept_x, kept_targets;
    cuda::Pinned<std::int32_t> kept_tokens, kept_labels;
    std::unique_ptr<Events> copy;
  };

  bool is_wide(const BatchView<Scalar>& batch) const {
    return rows_.packed(batch.pitch) != batch.pitch || rows_.packed_target(batch.target_pitch) != batch.target_pitch;
  }
  template <class Device> BatchView<Scalar, Cuda> in_slot(Slot& s, const BatchView<Scalar, Device>& batch) const {
    return {.x = s.x.data(),
            .pitch = rows_.packed(batch.pitch),
            .labels = batch.labels ? s.labels.data() : nullptr,
            .targets = batch.targets ? s.targets.data() : nullptr,
            .target_pitch = rows_.packed_target(batch.target_pitch),
            .count = batch.count,
            .global_count = batch.global_count,
            .first = batch.first,
            .labels_each = batch.labels_each,
            .tokens = batch.tokens ? s.tokens.data() : nullptr};
  }
  template <class T> void send(T* to, const T* from, long n) {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (n > 0)
      cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_->get()), "cudaMemcpyAsync (batch)",
                  cuda::Bytes{bytes});
  }
  /// n values of the batch in page-locked memory, which has room for as many as the slots have.
  template <class T> static void keep_rows(cuda::Pinned<T>& kept, long room, const T* from, long n, long pitch, long packed) {
    if (n * packed <= 0) return;
    if (static_cast<long>(kept.size()) < n * packed) kept = cuda::Pinned<T>(static_cast<std::size_t>(room));
    if (pitch == packed) ops::copy<Cpu>(kept.data(), from, n * packed);
    else ops::copy_rows<Cpu>(kept.data(), packed, from, pitch, n, packed);
  }
  void keep(Slot& s, const BatchView<Scalar>& batch, const BatchRoom& n) {
    if (n.x > 0) keep_rows(s.kept_x, room_.x, batch.x, batch.count, batch.pitch, rows_.packed(batch.pitch));
    keep_rows(s.kept_tokens, room_.tokens, batch.tokens, 1, n.tokens, n.tokens);
    keep_rows(s.kept_labels, room_.labels, batch.labels, 1, n.labels, n.labels);
    if (n.targets > 0)
      keep_rows(s.kept_targets, room_.targets, batch.targets, batch.count, batch.target_pitch,
                rows_.packed_target(batch.target_pitch));
  }

  Cuda where_;
  BatchRows rows_;
  BatchRoom room_{};
  std::array<Slot, 2> slots_{};
  std::size_t last_ = 0;
  std::unique_ptr<cuda::Stream> stream_;
};

}  // namespace skein::inline SKEIN_ABI::train
