// SPDX-License-Identifier: Apache-2.0
// What a Loader hands to a step: the staged samples of this rank, where they belong in the epoch, and nothing else. Plain
// pointers into the loader's memory, valid until the next batch is asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../device/batch_view.hpp"
#include "../tensor/view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Which of a loader's batches it is: the loader serves later ones into the same memory.
struct ServedBatch {
  std::shared_ptr<const std::int64_t> last{};  ///< the number of the last one that was asked for; null: no loader's
  std::int64_t number = 0;

  /// Its samples are still there, where the last `held` stay as they are.
  bool current(int held) const { return !last || *last - number <= held; }
};

namespace detail {
[[noreturn]] inline void refuse_overwritten(const char* set) {
  throw ArgumentError(std::string("a batch of ") + (set ? set : "a loader") +
                      " is used after later ones, which the loader has put into the same memory: use it before the next one is "
                      "asked for, copy what is to be kept (sk::Tensor<float, 2> x = batch.view<2>()), or let more of them stay, "
                      "LoaderOptions{.held = 10}");
}
[[noreturn]] inline void refuse_view(bool of_tokens) {
  throw ArgumentError(of_tokens ? "batch: its samples are tokens, which view() does not show: batch.token_view() has them"
                                : "batch: its samples are numbers, and no tokens: batch.view<2>() has them, and a loader serves "
                                  "tokens with .tokens = true");
}
}  // namespace detail

/// The samples of one rank in one step, in memory of Device (a Loader's: the host's), and what the step may want to know of them.
template <class Scalar = float, class Device = Cpu> struct Batch : BatchView<Scalar, Device> {
  Extents sample{};                       ///< extents of one sample
  int target_length = 0;                  ///< of a target vector
  const std::int64_t* indices = nullptr;  ///< sample i's index in the data set
  std::int64_t epoch = 0, step = 0;
  const char* set = nullptr;  ///< what messages call the data set
  ServedBatch served{};       ///< of a Loader's batch, and of a copy of it

  /// Throws ArgumentError where the loader has put later batches into its memory. What computes with it, and the views, do so.
  void check_current() const {
    if (!served.current(this->held)) [[unlikely]]
      detail::refuse_overwritten(set);
  }
  /// The samples as a tensor: (count, height, width, channels), (count, length), ... Throws ShapeError where Rank is not that of
  /// the samples plus one, ArgumentError where they are tokens.
  template <int Rank> TensorView<const Scalar, Rank, Device> view() const {
    check_current();
    if (this->tokens && !this->x) detail::refuse_view(true);
    if (Rank != sample.rank + 1)
      throw ShapeError(text("batch: samples of rank {} make a tensor of rank {}, not of {}", sample.rank, sample.rank + 1, Rank));
    Dims<Rank> extents;
    extents[0] = this->count;
    for (int i = 1; i < Rank; ++i) extents[i] = sample[i - 1];
    Dims<Rank> strides = row_major(extents);
    strides[0] = this->pitch;
    return {this->x, extents, strides};
  }
  /// The tokens as a matrix, (count, T). Throws ArgumentError where the samples are numbers.
  TensorView<const std::int32_t, 2, Device> token_view() const {
    check_current();
    if (this->x && !this->tokens) detail::refuse_view(false);
    return {this->tokens, dims(this->count, this->pitch), dims(this->pitch, 1)};
  }
  /// The target vectors as a matrix, (count, target_length).
  TensorView<const Scalar, 2, Device> target_view() const {
    check_current();
    return {this->targets, dims(this->count, target_length), dims(this->target_pitch, 1)};
  }
};

}  // namespace skein::inline SKEIN_ABI::data
