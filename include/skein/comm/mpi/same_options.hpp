// SPDX-License-Identifier: Apache-2.0
// What the options of all ranks have to have in common. MPI does not notice that ranks cut a message differently, or take another
// algorithm: it puts what came where it fits, and sums are wrong. So the options are compared before the first message.
#pragma once
#include "../options.hpp"
#include "../rank_names.hpp"
#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The options of this rank, with `check` where one rank has it: it is compared with all or not at all. Throws CommError, on all
/// ranks alike, where one has another value of an option that says which messages there are. Collective over `comm`.
CommOptions same_options(MPI_Comm comm, const RankNames& names, CommOptions options);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED_MPI
#include "same_options.ipp"
#endif
