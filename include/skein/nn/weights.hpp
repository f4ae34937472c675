// SPDX-License-Identifier: Apache-2.0
// Weights: the parameters and buffers of one model, and a count of their changes, by which those who keep copies of them in
// another order (packed, transposed, in 16 bits) know that theirs are stale. They are read as they are and written under a lease:
// the count moves when the lease ends, and a pass that begins before that is refused. Gradients are not here.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../device/memory.hpp"
#include "packed_weights.hpp"
#include "weights_use.hpp"

namespace skein::inline SKEIN_ABI {

/// What a network has learnt: its parameters and buffers, in memory of a device, and a count of the changes made to them.
template <class Scalar_, class Device_> class Weights {
 public:
  using Scalar = Scalar_;
  using Device = Device_;

  /// The right to write to the parameters, as long as it lives. In one line: `model.modify()[i] = 1`, `for (float& p :
  /// model.modify())`.
  class [[nodiscard]] Lease {
   public:
    using Device = Device_;

    explicit Lease(Weights& weights) : weights_(&weights) { weights.open(); }
    Lease(Lease&& o) noexcept : weights_(std::exchange(o.weights_, nullptr)), changed_(o.changed_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (weights_) weights_->close(changed_);
    }
    /// Nothing was written after all: copies stay good.
    void unchanged() { changed_ = false; }

    /// The whole arena, padding included. Of a lease that is kept: these pointers end with it.
    DeviceSpan<Scalar, Device> span() const& { return weights_->parameters_.span(); }
    DeviceSpan<Scalar, Device> span() const&& = delete;
    Scalar* data() const& { return weights_->parameters_.data(); }
    Scalar* data() const&& = delete;
    Scalar* begin() const& { return weights_->parameters_.data(); }
    Scalar* begin() const&& = delete;
    Scalar* end() const& { return begin() + size(); }
    Scalar* end() const&& = delete;
    std::size_t size() const { return weights_->parameters_.size(); }
    Scalar& operator[](std::size_t i) const requires on_host<Device> { return span()[i]; }

   private:
    Weights* weights_;
    bool changed_ = true;
  };

  Weights(std::size_t parameters, std::size_t buffers, Device where) : parameters_(parameters, where), buffers_(buffers, where) {}

  DeviceSpan<const Scalar, Device> read() const { return parameters_.span(); }
  [[nodiscard]] Lease modify() { return Lease(*this); }
  DeviceSpan<Scalar, Device> buffers() { return buffers_.span(); }
  DeviceSpan<const Scalar, Device> buffers() const { return buffers_.span(); }
  Device where() const { return parameters_.where(); }

  /// A count of changes. Odd while a lease is there: no copy has that number.
  std::uint64_t version() const { return version_; }
  /// Whoever is about to copy the weights asks. Throws ArgumentError while a lease is there.
  void assert_at_rest() const {
    if (leases_ > 0)
      throw ArgumentError(
          "the model's weights are being modified: a lease that modify() gave is still there. End it (its scope) "
          "before the pass");
  }

  /// The copies that a program's kernels read: one for all of its executors on the host, and for each on a device. Made when the
  /// first asks, kept as long as one is there. `program` is an address of its own.
  std::shared_ptr<nn::PackedWeights<Scalar, Device>> copies_of(const void* program, std::size_t packed, std::size_t converted) {
    const std::lock_guard lock(mutex_);
    Copies* ended = nullptr;
    for (Copies& c : copies_) {
      auto there = c.shared.lock();
      if (there && c.program == program && on_host<Device>) return there;
      if (!there) ended = &c;
    }
    auto made = std::make_shared<nn::PackedWeights<Scalar, Device>>(packed, converted, where());
    if (ended) *ended = {program, made};
    else copies_.push_back({program, made});
    return made;
  }

  /// The threads that use them just now.
  nn::WeightsUse& use() { return use_; }

  /// For a training's own parts, which write in the middle of a step: without a lease. changed() follows.
  DeviceSpan<Scalar, Device> unguarded() { return parameters_.span(); }
  void changed() { version_ += 2; }

 private:
  void open() {
    if (leases_++ == 0) ++version_;
  }
  void close(bool changed) {
    changed_ = changed_ || changed;
    if (--leases_ > 0) return;
    if (std::exchange(changed_, false)) ++version_;
    else --version_;
  }

  struct Copies {
    const void* program;
    std::weak_ptr<nn::PackedWeights<Scalar, Device>> shared;
  };
  Arena<Scalar, Device> parameters_, buffers_;
  std::uint64_t version_ = 2;
  int leases_ = 0;
  bool changed_ = false;  // by one of the leases that are there
  std::vector<Copies> copies_;
  std::mutex mutex_;  // of copies_: executors may be made by several threads
  nn::WeightsUse use_;
};

}  // namespace skein::inline SKEIN_ABI
