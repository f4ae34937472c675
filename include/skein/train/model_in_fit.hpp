// SPDX-License-Identifier: Apache-2.0
// A model is in one training at a time: ranks that are threads and share one object would all write its weights.
#pragma once
#include "held_alone.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Says, as long as it lives, that a model is in a training. Throws ArgumentError where it is in one already.
class ModelInFit {
 public:
  explicit ModelInFit(const void* model)
      : held_(model,
              "this model is in another training: ranks that are threads have a model each, made in the function that spawn() "
              "calls") {}

 private:
  HeldAlone held_;
};

}  // namespace skein::inline SKEIN_ABI::train
