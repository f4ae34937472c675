// SPDX-License-Identifier: Apache-2.0
// PackedWeights: copies of weights in the order that kernels read, and of which version of the weights they are. They belong to
// the weights: all executors of one program on the host share them, so that a trainer and a predictor pack once. A device has
// some for each executor, since a captured step packs within every replay.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

#include "../device/memory.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The copies of one program: what layers pack, and the parameters in the activations' type where that is another.
template <class Scalar, class Device> class PackedWeights {
 public:
  /// So many scalars of packed copies, and of converted parameters.
  PackedWeights(std::size_t packed, std::size_t converted, Device where) : packed_(packed, where), converted_(converted, where) {}

  Scalar* packed() { return packed_.data(); }
  Scalar* converted() { return converted_.data(); }
  std::size_t bytes() const { return (packed_.size() + converted_.size()) * sizeof(Scalar); }

  /// Notes, in a debug build, the hash of the weights that the copies were made of; and returns it.
  void made_of(std::uint64_t hash) { hash_.store(hash, std::memory_order_relaxed); }
  std::uint64_t made_of() const { return hash_.load(std::memory_order_relaxed); }

  /// A number for an executor, from 1: who packs.
  std::uint64_t join() { return 1 + joined_++ % 0xfffffe; }
  /// Asked by every worker of an executor: must it help to make the copies of that version? Waits while another executor makes
  /// them. All workers of one executor get the same answer.
  bool begin(std::uint64_t version, std::uint64_t who) {
    for (std::uint64_t seen = state_.load(std::memory_order_acquire);;) {
      if (seen == version) return false;
      const std::uint64_t owner = seen >> version_bits;
      if (owner == who) return true;
      if (owner != 0) {
        std::this_thread::yield();
        seen = state_.load(std::memory_order_acquire);
      } else if (state_.compare_exchange_weak(seen, seen | who << version_bits, std::memory_order_acquire)) {
        return true;
      }
    }
  }
  /// Every worker, once all have done their parts.
  void end(std::uint64_t version) { state_.store(version, std::memory_order_release); }
  /// After an exception of a worker: others may begin.
  void abandon(std::uint64_t who) {
    if (state_.load(std::memory_order_acquire) >> version_bits == who) state_.store(0, std::memory_order_release);
  }

 private:
  Arena<Scalar, Device> packed_, converted_;
  static constexpr int version_bits = 40;
  std::atomic<std::uint64_t> state_{0};  // a version, and above its bits who makes the copies of another one
  std::atomic<std::uint64_t> joined_{0}, hash_{0};
};

}  // namespace skein::inline SKEIN_ABI::nn
