// expect: Reproducible<V>: a batch is cut into 1 to 1024 virtual shards
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/data/reproducible.hpp>

#ifdef SKEIN_TWIN
skein::parallel::Reproducible<8> option;
#else
skein::parallel::Reproducible<0> option;
#endif
