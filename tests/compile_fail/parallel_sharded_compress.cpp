// expect: Sharded<2> sums gradients by a reduce-scatter of its own: Compress and Algorithm are of an all-reduce, take Sharded<1> with them
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/data/sharded.hpp>

namespace parallel = skein::parallel;

struct Narrow : parallel::OptionBase {
  static constexpr parallel::OptionKind kind = parallel::OptionKind::compress;
};
#ifdef SKEIN_TWIN
using State = parallel::Sharded<1>;
#else
using State = parallel::Sharded<2>;
#endif

static_assert(parallel::assert_options<State, Narrow>());
