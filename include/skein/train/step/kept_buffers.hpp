// SPDX-License-Identifier: Apache-2.0
// KeptBuffers: a model's buffers as they were before a step. Forward moves running statistics before anybody knows whether the
// step counts; one that is left out, or that throws, gives them back.
#pragma once
#include <algorithm>
#include <vector>

#include "../../device/device.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Of a model on the host; on a device, where no step is left out, nothing is kept.
template <class Model> class KeptBuffers {
  static constexpr bool any = on_host<typename Model::device> && Model::sizes.buffers > 0;

 public:
  /// Allocates.
  void reserve() {
    if constexpr (any) values_.resize(static_cast<std::size_t>(Model::sizes.buffers));
  }
  void keep([[maybe_unused]] const Model& model) {
    if constexpr (any) std::copy_n(model.buffers().data, values_.size(), values_.begin());
  }
  void give_back([[maybe_unused]] Model& model) const {
    if constexpr (any) std::copy(values_.begin(), values_.end(), model.buffers().data);
  }

 private:
  std::vector<typename Model::Scalar> values_;
};

}  // namespace skein::inline SKEIN_ABI::train
