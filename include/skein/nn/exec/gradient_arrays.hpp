// SPDX-License-Identifier: Apache-2.0
// GradientArrays: the gradients of a rank's workers, or of its virtual shards. The first array is the model's own; each other has
// all parameters too, so that an offset means the same in all of them. What is frozen from the first layer on has no gradients:
// on the host the pages of their zeros take no memory.
#pragma once
#include <vector>

#include "../../device/device.hpp"
#include "../../device/memory.hpp"
#include "../model.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Arrays of Model::sizes.stored gradients with the tail behind them, on the model's device.
template <class Model> class GradientArrays {
 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;

  /// None: of what only evaluates.
  GradientArrays() = default;
  /// So many arrays. No pass writes before `unwritten`; a training before may have left gradients before `first_trained` in the
  /// model's array, which are zero from now on. Memory that the model has of another owner stays as it is.
  GradientArrays(Model& model, int count, long unwritten, long first_trained) : where_(model.where()), unwritten_(unwritten) {
    for (int i = 0; i < count; ++i) {
      if (i > 0) own_.emplace_back(size, where_);
      arrays_.push_back(i > 0 ? own_.back().data() : model.gradient_arena().data);
      if (i == 0) Memory<Device>::clear(array(0) + unwritten, bytes_of(first_trained - unwritten), where_);
      if (i > 0 || model.owns_gradients()) give_back(array(i));
      else Memory<Device>::clear(array(i), bytes_of(unwritten), where_);
    }
  }

  int count() const { return static_cast<int>(arrays_.size()); }
  Scalar* array(int i) const { return arrays_[static_cast<std::size_t>(i)]; }
  /// Gradients before this offset are zeros that nobody writes.
  long unwritten() const { return unwritten_; }
  /// Array i begins at zero again, with its tail.
  void clear(int i) { Memory<Device>::clear(array(i) + unwritten_, bytes_of(static_cast<long>(size) - unwritten_), where_); }
  /// Bytes of memory that all of them take.
  std::size_t bytes() const { return arrays_.size() * size * sizeof(Scalar) - given_back_; }

 private:
  static constexpr auto size = static_cast<std::size_t>(Model::sizes.stored + gradient_tail);

  static std::size_t bytes_of(long n) { return static_cast<std::size_t>(n) * sizeof(Scalar); }
  void give_back(Scalar* array) {
    if constexpr (on_host<Device>) given_back_ += Memory<Device>::clear_and_give_back(array, bytes_of(unwritten_));
    else Memory<Device>::clear(array, bytes_of(unwritten_), where_);
  }

  [[no_unique_address]] Device where_{};
  std::vector<Arena<Scalar, Device>> own_;
  std::vector<Scalar*> arrays_;
  long unwritten_ = 0;
  std::size_t given_back_ = 0;  // bytes
};

}  // namespace skein::inline SKEIN_ABI::nn
