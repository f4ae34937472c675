// expect: ExchangeBy says how gradients are exchanged: Compress and Algorithm have nothing to change of it, leave them out
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/data/data_parallel_option.hpp>
#include <skein/parallel/data/exchange_by.hpp>

namespace parallel = skein::parallel;

struct Narrow : parallel::OptionBase {
  static constexpr parallel::OptionKind kind = parallel::OptionKind::compress;
};
struct Mine {};
#ifdef SKEIN_TWIN
static_assert(parallel::assert_options<Narrow>());
#endif
#ifndef SKEIN_TWIN
static_assert(parallel::assert_options<parallel::ExchangeBy<Mine>, Narrow>());
#endif
