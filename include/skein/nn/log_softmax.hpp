// SPDX-License-Identifier: Apache-2.0
// LogSoftmax over the last extent: the logarithm of Softmax, without overflow and without its rounding. Goes before Nll.
#pragma once
#include "softmax.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// y = x - log(sum(exp(x))).
struct LogSoftmax : detail::RowSoftmax<true> {
  static constexpr OutputKind gives = OutputKind::log_probabilities;
};

}  // namespace skein::inline SKEIN_ABI::nn
