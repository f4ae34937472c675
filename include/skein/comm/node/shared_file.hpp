// SPDX-License-Identifier: Apache-2.0
// A file in memory that the ranks of a node map: one makes it, and tells the others how to open it. Where the machine can, it has
// no name: the others open it through the maker's descriptor, and it ends with the last process that has it, however that ends.
// Elsewhere it has one in /dev/shm until all have opened it.
#pragma once
#include <cstdint>

#include "../../core/config.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// How the other ranks come by the file: through the maker's descriptor, for which they must be allowed to look at its process,
/// or by a name.
enum class OpenBy { descriptor, name };

/// What the maker tells the others.
using SharedFileText = char[64];

/// A new file in shared memory, of that size, of which nothing is claimed, and what open_shared_file takes. -1, and no text,
/// where there is none, or none without a name. What is written beyond the space that is left is a SIGBUS: claim it
/// (posix_fallocate).
int make_shared_file(SharedFileText& text, std::uint64_t bytes, OpenBy by);

/// The file that another process of this machine has made, and still has; -1 where it cannot be opened.
int open_shared_file(const char* text);

/// All have opened it, or one could not: the name goes, if it has one.
void forget_shared_file(const char* text);

/// Removes the files with names whose process has ended before it could: it was killed in the milliseconds before all ranks
/// had opened one. Of this user, and of the processes whose numbers are known here. Returns how many. Each make_shared_file that
/// gives a name does it: when the first of a process did, one that was killed may not have ended yet.
int sweep_shared_files();

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "shared_file.ipp"
#endif
