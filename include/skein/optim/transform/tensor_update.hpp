// SPDX-License-Identifier: Apache-2.0
// TensorUpdate: one parameter as a transform of whole tensors sees it: its name and extents, value, gradient and state as
// matrices of the tensor module, and what its parameter group says.
#pragma once
#include <cstdint>
#include <string_view>

#include "../../core/shape.hpp"
#include "../../tensor/evaluate.hpp"
#include "../../tensor/view.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Matrices have one column for each output: Linear (in, out); Conv2d (kernel * kernel * in / groups, out); a vector is (1, n).
/// Their rows are padded in memory: write through the views alone. On a GPU the views are the device's, the rest is the host's.
template <class Scalar, class Device> struct TensorUpdate {
  using Matrix = TensorView<Scalar, 2, Device>;

  std::string_view name{};                      ///< "7.weight"
  Extents extents{};                            ///< as the layer declares them
  bool decay = true;                            ///< the field's recipes let weight decay act on it (not on biases and norms)
  float lr_factor = 1, decay_factor = 1;        ///< of its parameter group
  float lr = 0;                                 ///< scheduled, with the group's factor
  std::int64_t step = 1;                        ///< 1 in the first step
  TensorView<const Scalar, 2, Device> value{};  ///< (rows, columns)
  Matrix gradient{};                            ///< (rows, columns): of all workers and samples; to be written
  Scalar* const* state_arrays = nullptr;        ///< of the transform, in the layout of the arena
  long offset = 0;                              ///< of the parameter in the arena

  /// Array k of the transform's state: (rows, columns), zero at first.
  Matrix state(int k) const { return {state_arrays[k] + offset, gradient.extents, gradient.strides, gradient.where}; }
};

}  // namespace skein::inline SKEIN_ABI::optim
