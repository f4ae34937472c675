// SPDX-License-Identifier: Apache-2.0
// An object that one thread at a time works with: ranks that are threads and share it would write over each other.
#pragma once
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Says, as long as it lives, that an object is held. Throws ArgumentError with the sentence `refusal` where it is held already.
class HeldAlone {
 public:
  HeldAlone(const void* object, const std::string& refusal) : object_(object) {
    const std::lock_guard lock(mutex());
    if (std::find(objects().begin(), objects().end(), object) != objects().end()) throw ArgumentError(refusal);
    objects().push_back(object);
  }
  HeldAlone(const HeldAlone&) = delete;
  HeldAlone& operator=(const HeldAlone&) = delete;
  ~HeldAlone() {
    const std::lock_guard lock(mutex());
    objects().erase(std::find(objects().begin(), objects().end(), object_));
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<const void*>& objects() {
    static std::vector<const void*> all;
    return all;
  }

  const void* object_;
};

}  // namespace skein::inline SKEIN_ABI::train
