// SPDX-License-Identifier: Apache-2.0
// ExchangeBy<Own>: an option of DataParallel: gradients are exchanged by a type of the user's, exchange/exchange.hpp says what
// such a type has.
#pragma once
#include "../exchange/exchange.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// DataParallel{world, ExchangeBy<Own>{}}: buckets, their order, the sums of the batch and the trace are as without it.
template <class Own> struct ExchangeBy : OptionBase {
  static constexpr OptionKind kind = OptionKind::exchange;
  template <class> using Exchange = Own;
};

}  // namespace skein::inline SKEIN_ABI::parallel
