// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels that change from step to step, for steps that are captured once and replayed: a kernel reads them from a
// block of device memory, which one asynchronous copy fills before each replay. Host code is the same in every case: it makes
// cuda::argument(x), hands that to its kernel, and the kernel reads argument().
//
//     ArgumentScope within(block, ArgumentMode::replay);    // or capture; without a scope the value itself is handed on
//     cuda::for_each(n, Pass{cuda::argument(pass)});        // in a replay: writes the argument, launches nothing
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "memory.hpp"
#include "pinned.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// What a kernel reads: a value that was handed on with the launch, or a place in device memory.
template <class T> struct Argument {
  T value{};
  const T* at = nullptr;
  /// By value: the address of a kernel's parameter would move all of it to local memory.
  SKEIN_HOST_DEVICE T operator()() const {
    T x = value;
    if (at) x = *at;
    return x;
  }
};

/// A block of device memory and a ring of page-locked copies of it: put() in the same order before every step, then upload().
/// The ring lets the host write the arguments of later steps while earlier ones are on their way.
class Arguments {
 public:
  Arguments() = default;
  explicit Arguments(std::size_t bytes, Cuda device) { reserve(bytes, device); }

  /// Room for so many bytes. Growing moves the block: what was captured with it is void. Where it throws, all is as it was.
  bool reserve(std::size_t bytes, Cuda device) {
    if (bytes <= block_.size()) return false;
    const std::size_t size = (bytes + 255) / 256 * 256;
    const UseDevice scope(device);
    if (!slots_.empty()) synchronize(device);  // what is on its way out of the old slots must have left
    Arena<std::byte, Cuda> block(size, device);
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < ring; ++i) slots.emplace_back(size);
    block_ = std::move(block);
    slots_ = std::move(slots);
    return true;
  }
  std::size_t capacity() const { return block_.size(); }
  /// Bytes that the last round of put() took.
  std::size_t used() const { return used_; }

  /// The next round. Waits only where the host is `ring` rounds ahead of the device.
  void begin() {
    next_ = (next_ + 1) % ring;
    Slot& s = slots_[next_];
    if (s.pending && !s.copied.done()) s.copied.synchronize();
    s.pending = false;
    used_ = 0;
  }
  /// Where the device will find x. Throws DeviceError where the block is full.
  template <class T> const T* put(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>, "cuda::Arguments: what a kernel reads must be trivially copyable");
    const std::size_t at = room_for(used_, sizeof(T), alignof(T)) - sizeof(T);
    if (at + sizeof(T) > block_.size())
      throw DeviceError(text("the block of a step's arguments has {} bytes, more are wanted", block_.size()));
    std::memcpy(slots_[next_].bytes.data() + at, &x, sizeof(T));
    used_ = at + sizeof(T);
    return reinterpret_cast<const T*>(block_.data() + at);
  }
  /// All that was put since begin(), in one copy, in the order of `stream`.
  void upload(cudaStream_t stream) {
    if (used_ == 0) return;
    Slot& s = slots_[next_];
    check(cudaMemcpyAsync(block_.data(), s.bytes.data(), used_, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync (arguments)",
          Bytes{used_});
    s.copied.record(stream);
    s.pending = true;
  }

  /// Bytes that are taken when `bytes` are and one more value comes.
  static constexpr std::size_t room_for(std::size_t bytes, std::size_t size, std::size_t alignment) {
    const std::size_t to = alignment < 16 ? 16 : alignment;
    return (bytes + to - 1) / to * to + size;
  }

 private:
  static constexpr std::size_t ring = 4;
  struct Slot {
    explicit Slot(std::size_t n) : bytes(n) {}
    Pinned<std::byte> bytes;
    Event copied;
    bool pending = false;
  };

  Arena<std::byte, Cuda> block_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0, used_ = 0;
};

/// What argument() does: hand values on and count what a block would have to hold; put them into the block while the step is
/// captured; the same while it is replayed, when kernels are not launched.
enum class ArgumentMode { count, capture, replay };

namespace detail {
struct CurrentArguments {
  Arguments* block = nullptr;
  ArgumentMode mode = ArgumentMode::count;
  std::size_t counted = 0;
};
inline CurrentArguments*& current_arguments() {
  thread_local CurrentArguments* current = nullptr;
  return current;
}
}  // namespace detail

/// The calling thread's arguments go to `block` for a scope.
class ArgumentScope {
 public:
  ArgumentScope(Arguments& block, ArgumentMode mode)
      : mine_{&block, mode, block.used()}, before_(std::exchange(detail::current_arguments(), &mine_)) {}
  ~ArgumentScope() { detail::current_arguments() = before_; }
  ArgumentScope(const ArgumentScope&) = delete;
  ArgumentScope& operator=(const ArgumentScope&) = delete;
  /// Bytes that the block must have for what came by.
  std::size_t counted() const { return mine_.counted; }

 private:
  detail::CurrentArguments mine_;
  detail::CurrentArguments* before_;
};

/// True while a captured step is replayed: host code runs to write its arguments, for_each and for_each_row launch nothing.
inline bool replaying() {
  const detail::CurrentArguments* c = detail::current_arguments();
  return c && c->mode == ArgumentMode::replay;
}

/// x as a kernel's argument that may be another one in the next step.
template <class T> Argument<T> argument(const T& x) {
  detail::CurrentArguments* c = detail::current_arguments();
  if (!c) return {x, nullptr};
  if (c->mode == ArgumentMode::count) {
    c->counted = Arguments::room_for(c->counted, sizeof(T), alignof(T));
    return {x, nullptr};
  }
  return {x, c->block->put(x)};
}

}  // namespace skein::inline SKEIN_ABI::cuda
