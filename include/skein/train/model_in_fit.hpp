// SPDX-License-Identifier: Apache-2.0
// A model is in one training at a time: ranks that are threads and share one object would all write its weights.
#pragma once
#include <algorithm>
#include <mutex>
#include <vector>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Says, as long as it lives, that a model is in a training. Throws ArgumentError where it is in one already.
class ModelInFit {
 public:
  explicit ModelInFit(const void* model) : model_(model) {
    const std::lock_guard lock(mutex());
    if (std::find(models().begin(), models().end(), model) != models().end())
      throw ArgumentError(
          "this model is in another training: ranks that are threads have a model each, made in the function that spawn() "
          "calls");
    models().push_back(model);
  }
  ModelInFit(const ModelInFit&) = delete;
  ModelInFit& operator=(const ModelInFit&) = delete;
  ~ModelInFit() {
    const std::lock_guard lock(mutex());
    models().erase(std::find(models().begin(), models().end(), model_));
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<const void*>& models() {
    static std::vector<const void*> all;
    return all;
  }

  const void* model_;
};

}  // namespace skein::inline SKEIN_ABI::train
