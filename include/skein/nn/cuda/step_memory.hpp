// SPDX-License-Identifier: Apache-2.0
// The numbers of a step and its sums in the memory of a GPU. The numbers stand at the front of the block of the step's arguments,
// so that one asynchronous copy brings both (device/cuda/arguments.hpp).
#pragma once
#include <memory>

#include "../../device/cuda/arguments.hpp"
#include "../../device/cuda/choices.hpp"
#include "../../device/cuda/workspace.hpp"
#include "../step_memory.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <> class StepMemory<Cuda> {
 public:
  explicit StepMemory(Cuda where = {}) : where_(where), arguments_(1024, where), sums_{Sums(4, where), Sums(4, where)} {}

  using Here = cuda::UseDevice;
  Here enter() const { return Here(where_); }

  /// Writes and, unless the step is captured or replayed, uploads. Does not wait.
  void begin(const ops::StepValues& values) {
    arguments_.begin();
    values_ = arguments_.put(values);
    if (!held_) upload();
  }
  const ops::StepValues* values() const { return values_; }
  void turn_to(bool evaluation) { evaluates_ = evaluation; }
  double* sums() { return sums_[evaluates_].data(); }
  void clear_sums() { sums_[evaluates_].clear(); }
  void wait() const { cuda::synchronize(where_); }
  void take_over() const {
    if (!given_) return;
    const auto here = enter();
    given_->hold(cuda::stream(where_));
  }
  void hand_over() noexcept try {
    const auto here = enter();
    if (!given_) given_ = std::make_unique<cuda::Event>();
    given_->record(cuda::stream(where_));
  } catch (const Error&) {  // a device that has failed: the next call says so
  }
  /// Blocks: the sums as they are when all that the stream was given is done.
  LossSums read_sums() const {
    double s[3];
    Memory<Cuda>::to_host(s, sums_[evaluates_].data(), sizeof s, where_);
    return {s[0], s[1], s[2]};
  }

  /// While it lives, begin() does not upload: more arguments come, and upload() is called when they are complete.
  class Hold {
   public:
    explicit Hold(StepMemory& m) : memory_(m) { memory_.held_ = true; }
    ~Hold() { memory_.held_ = false; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    StepMemory& memory_;
  };
  void upload() { arguments_.upload(cuda::stream(where_)); }
  cuda::Arguments& arguments() { return arguments_; }
  Cuda where() const { return where_; }
  /// Bytes of the workspace that the device's libraries have on the calling thread: what the layers' prepare() has reserved.
  long workspace_bytes() const {
    const auto here = enter();
    return static_cast<long>(cuda::workspace().size());
  }
  /// Lines on what the libraries chose on the calling thread, on this device.
  std::string choices_text() const {
    const auto here = enter();
    return cuda::choices().text();
  }

 private:
  using Sums = Arena<double, Cuda>;

  Cuda where_;
  cuda::Arguments arguments_;
  Sums sums_[2];  // of training, of evaluations
  bool evaluates_ = false;
  const ops::StepValues* values_ = nullptr;
  std::unique_ptr<cuda::Event> given_;  // by the thread that handed over
  bool held_ = false;
};

}  // namespace skein::inline SKEIN_ABI::nn
