// expect: Staleness<S> is the number of steps that the fastest worker may run ahead: 0 (synchronous) or more
// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/staleness.hpp>

#ifdef SKEIN_TWIN
using Bound = skein::parallel::Staleness<0>;
#else
using Bound = skein::parallel::Staleness<-1>;
#endif

int main() { return Bound::bound == 0 ? 0 : 1; }
