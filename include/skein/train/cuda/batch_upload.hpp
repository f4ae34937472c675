// SPDX-License-Identifier: Apache-2.0
// Brings batches to a GPU while it still computes the step before: two slots in its memory, filled by a stream of their own.
// A batch that stays as it is long enough (a trainer's loader, page-locked) is copied from where it lies; any other one goes
// through page-locked memory here.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "../../data/host_memory.hpp"
#include "../../device/batch_view.hpp"
#include "../../device/cuda/memory.hpp"
#include "../../device/cuda/pinned.hpp"

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
            .release = [](void* p, std::size_t) { (void)cudaFreeHost(p); }};
  }

  explicit BatchUpload(Cuda where) : where_(where) {}

  /// Do batches of so many values have room? Where not, reserve() makes it.
  bool has_room(long scalars, long tokens, long labels, long targets) const {
    return stream_ && scalars <= room_.x && tokens <= room_.tokens && labels <= room_.labels && targets <= room_.targets;
  }
  /// Memory moves: what was captured with it is void. Where there is not so much, no batch has room, and smaller ones may be
  /// asked for. Throws DeviceError.
  void reserve(long scalars, long tokens, long labels, long targets) {
    const Room room{std::max(scalars, room_.x), std::max(tokens, room_.tokens), std::max(labels, room_.labels),
                    std::max(targets, room_.targets)};
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

  /// The batch in the next slot; the current device is where(). The calling thread's stream has it when what follows runs there.
  /// Waits only where the host is a whole ring of slots ahead.
  BatchView<Scalar, Cuda> upload(const BatchView<Scalar>& batch) {
    next_ ^= 1;
    Slot& s = slots_[next_];
    Events& e = *s.copy;
    if (e.pending && !e.copied.done()) e.copied.synchronize();
    e.pending = true;
    const std::size_t n = static_cast<std::size_t>(batch.count), values = n * static_cast<std::size_t>(batch.pitch),
                      x = batch.tokens ? 0 : values, tokens = batch.tokens ? values : 0,
                      labels = batch.labels ? n * static_cast<std::size_t>(batch.labels_each) : 0,
                      targets = batch.targets ? n * static_cast<std::size_t>(batch.target_pitch) : 0;
    if (batch.held < held) keep(s, batch, x, tokens, labels, targets);
    e.free.hold(stream_->get());
    send(s.x.data(), batch.held < held ? s.kept_x.data() : batch.x, x);
    send(s.tokens.data(), batch.held < held ? s.kept_tokens.data() : batch.tokens, tokens);
    send(s.labels.data(), batch.held < held ? s.kept_labels.data() : batch.labels, labels);
    send(s.targets.data(), batch.held < held ? s.kept_targets.data() : batch.targets, targets);
    e.copied.record(stream_->get());
    e.copied.hold(cuda::stream(where_));

    return {.x = s.x.data(),
            .pitch = batch.pitch,
            .labels = batch.labels ? s.labels.data() : nullptr,
            .targets = batch.targets ? s.targets.data() : nullptr,
            .target_pitch = batch.target_pitch,
            .count = batch.count,
            .global_count = batch.global_count,
            .first = batch.first,
            .labels_each = batch.labels_each,
            .tokens = batch.tokens ? s.tokens.data() : nullptr};
  }
  /// What the last upload() gave is not needed by anything that comes later.
  void finish() { slots_[next_].copy->free.record(cuda::stream(where_)); }

 private:
  struct Room {
    long x = 0, tokens = 0, labels = 0, targets = 0;
  };
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

  template <class T> void send(T* to, const T* from, std::size_t n) {
    if (n == 0) return;
    cuda::check(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyHostToDevice, stream_->get()), "cudaMemcpyAsync (batch)",
                cuda::Bytes{n * sizeof(T)});
  }
  void keep(Slot& s, const BatchView<Scalar>& batch, std::size_t x, std::size_t tokens, std::size_t labels, std::size_t targets) {
    if (s.kept_x.size() < x) s.kept_x = cuda::Pinned<Scalar>(static_cast<std::size_t>(room_.x));
    if (x > 0) std::memcpy(s.kept_x.data(), batch.x, x * sizeof(Scalar));
    if (tokens > 0) {
      if (s.kept_tokens.size() < tokens) s.kept_tokens = cuda::Pinned<std::int32_t>(static_cast<std::size_t>(room_.tokens));
      std::memcpy(s.kept_tokens.data(), batch.tokens, tokens * sizeof(std::int32_t));
    }
    if (labels > 0) {
      if (s.kept_labels.size() < labels) s.kept_labels = cuda::Pinned<std::int32_t>(static_cast<std::size_t>(room_.labels));
      std::memcpy(s.kept_labels.data(), batch.labels, labels * sizeof(std::int32_t));
    }
    if (targets > 0) {
      if (s.kept_targets.size() < targets) s.kept_targets = cuda::Pinned<Scalar>(static_cast<std::size_t>(room_.targets));
      std::memcpy(s.kept_targets.data(), batch.targets, targets * sizeof(Scalar));
    }
  }

  Cuda where_;
  Room room_{};
  std::array<Slot, 2> slots_{};
  std::size_t next_ = 0;
  std::unique_ptr<cuda::Stream> stream_;
};

}  // namespace skein::inline SKEIN_ABI::train
