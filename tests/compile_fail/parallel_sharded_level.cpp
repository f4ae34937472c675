// expect: Sharded<1> shards the optimizer's state, Sharded<2> the gradients too: there is no other stage
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/data/sharded.hpp>

#ifdef SKEIN_TWIN
skein::parallel::Sharded<2> option;
#else
skein::parallel::Sharded<3> option;
#endif
