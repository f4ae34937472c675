// SPDX-License-Identifier: Apache-2.0
// The bodies of check_batch.hpp.
#pragma once
#include "../core/text.hpp"
#include "check_batch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::nn {

SKEIN_INLINE std::string shape_text(const Extents& e) { return text("{}<{}>", e.tokens ? "Tokens" : "Shape", joined(e)); }

SKEIN_INLINE void check_extents(const Extents& given, const Extents& wanted, const std::string& whose, const char* how) {
  const auto extent = [](const Extents& e, int i) { return i < e.rank ? e[i] : 1; };
  bool same = wanted.flat() ? given.count() == wanted.count() : true;
  for (int i = 0; i < 4 && !wanted.flat(); ++i) same = same && extent(given, i) == extent(wanted, i);
  if (same) return;
  std::string message = whose + " are " + shape_text(given) + ", the model takes " + shape_text(wanted);
  if (given.count() == wanted.count() && given.flat()) {
    message += text(": if the values are in that order, say so: {}{}", how, joined(wanted, " x "));
  } else if (given.rank == 3 && wanted.rank == 3 && given.count() == wanted.count()) {
    message += ": images are (height, width, channels), the channels last";
  }
  throw ShapeError(message);
}

SKEIN_INLINE void refuse_targets(TargetKind wanted, TargetKind given, const std::string& of, long length) {
  const bool labels = wanted == TargetKind::label;
  const char* with = labels ? "class labels" : "numbers";
  if (given == TargetKind::none)
    throw ArgumentError(
        text("the loss compares with {}, and {} has no targets: give it {} beside the samples, as "
             "from_tensors(x, extents, y), from_npy(x, y) and Hdf5Options::targets do",
             with, of, labels ? "labels" : "target vectors"));
  if (!labels)
    throw ArgumentError("the loss compares with numbers, the targets of " + of +
                        " are class labels, as integers are: give it floats (from_tensors of float; in a file: write y as "
                        "floats), or use CrossEntropy");
  throw ArgumentError(
      "the loss compares with class labels, the targets of " + of +
      " are numbers: give it integers (from_tensors of int; in a file: write y as integers), or use a loss such as Mse" +
      (length > 1 ? "; where data::join has made numbers of labels beside others, graph_loss gives each part of "
                    "them a loss of its own"
                  : ""));
}
SKEIN_INLINE void refuse_target_length(long given, long wanted, long outputs, const std::string& of) {
  throw ShapeError(text("a target of {} has {} values, {} {}", of, given,
                        wanted == outputs ? "the network gives" : "the losses of graph_loss compare with", wanted));
}

namespace detail {
SKEIN_INLINE void refuse_null() { throw ArgumentError("the batch has no samples: .x is null"); }
SKEIN_INLINE void refuse_count(long count) {
  throw ArgumentError(text("the batch has {} samples: .count is how many there are, 0 or more", count));
}
SKEIN_INLINE void refuse_unreserved() {
  throw ArgumentError("step: there is no memory yet: call reserve({.capacity = loader.capacity()}) before the first step");
}
SKEIN_INLINE std::string batch_text(const char* set) { return set ? set : "the batch"; }
SKEIN_INLINE void check_batch_extents(const Extents& given, const Extents& wanted, const char* set) {
  check_extents(given, wanted, batch_text(set) + "'s samples", "from_tensors(x, sk::Extents{...}, y) with the extents ");
}
SKEIN_INLINE void refuse_pitch(long pitch, const char* member, long wanted, const char* of) {
  throw ShapeError(
      text("the batch's {} is {}, and {} has {} values: {} is the distance from one sample to the next, at least that", member,
           pitch, of, wanted, member));
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn

SKEIN_END_COLD
