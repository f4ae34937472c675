// SPDX-License-Identifier: Apache-2.0
// Labels that are no classes of a network, or not one for each of its positions: said before a step, by the sample's name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "../../core/error.hpp"
#include "../../device/batch_view.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Throws ArgumentError for the first of `count` labels, `each` a sample, that is no class: a fit checks a batch before its
/// parallel region. `first` is the place of the first label, for the message, where no names are given.
inline void check_labels(const std::int32_t* labels, long count, long classes, std::optional<std::int32_t> ignore = {},
                         long first = 0, long each = 1, const SampleNames& names = {}) {
  for (long i = 0; i < count; ++i) {
    if ((labels[i] >= 0 && labels[i] < classes) || (ignore && labels[i] == *ignore)) continue;
    const std::string sample = names.indices ? names(i / each) : SampleNames{}((first + i) / each);
    if (labels[i] == INT32_MIN)  // data::unwritten_label
      throw ArgumentError(sample + " has no label: read() or labels() of the data set has left it out; write it");
    throw ArgumentError(text("{} has the label {}{}; the network has {} outputs, so labels are 0 to {}{}", sample, labels[i],
                             (each > 1 ? " at position " + std::to_string((first + i) % each) : ""), classes, classes - 1,
                             (ignore ? " (or " + std::to_string(*ignore) + ", which is ignored)"
                                     : ": mend the labels, or name the one to leave out with .ignore_label")));
  }
}

/// Throws ArgumentError where a batch, which has labels, has another number of them a sample than the network gives rows.
inline void check_labels_each(long given, long wanted) {
  if (given != wanted)
    throw ArgumentError(
        text("the batch has {} labels a sample, the network's output {} positions a sample to compare with them: each position "
             "takes one label",
             given, wanted));
}

}  // namespace skein::inline SKEIN_ABI::nn
