// SPDX-License-Identifier: Apache-2.0
// Where the edges of a Sequential and their gradients lie in scratch memory (nn/sequential.hpp): each while some children run,
// and so far to the front as those leave room that live at the same time.
#pragma once
#include <array>

#include "memory_requirements.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Places arrays of one pass, those of the last children first. Two arrays lie apart if some child runs while both live.
class ScratchLayout {
 public:
  /// An array that lives while the children `first` to `last` run.
  constexpr ActivationOffset take(long pitch, int first, int last) {
    const long line = whole_line(pitch);
    long begin = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < count_; ++i) {
        const Array& a = arrays_[static_cast<std::size_t>(i)];
        if (a.last < first || last < a.first || a.end <= begin || begin + line <= a.begin) continue;
        begin = a.end;
        moved = true;
      }
    }
    arrays_[static_cast<std::size_t>(count_++)] = {begin, begin + line, first, last};
    return {begin, line};
  }
  /// The array there, which lives from `old_first` on, lives from `first` on.
  constexpr void extend(ActivationOffset array, int old_first, int first) {
    for (int i = 0; i < count_; ++i) {
      Array& a = arrays_[static_cast<std::size_t>(i)];
      if (a.begin == array.offset && a.first == old_first) a.first = first;
    }
  }
  /// What is taken from now on lives while children up to `last` run: the arrays of later ones are in nobody's way.
  constexpr void forget_behind(int last) {
    int left = 0;
    for (int i = 0; i < count_; ++i)
      if (arrays_[static_cast<std::size_t>(i)].first <= last)
        arrays_[static_cast<std::size_t>(left++)] = arrays_[static_cast<std::size_t>(i)];
    count_ = left;
  }

 private:
  struct Array {
    long begin = 0, end = 0;
    int first = 0, last = 0;
  };
  std::array<Array, 8> arrays_{};  // an edge or two on both sides of a child, and copies of them
  int count_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::nn
