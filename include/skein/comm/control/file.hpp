// SPDX-License-Identifier: Apache-2.0
// A rendezvous through a file in a shared folder: rank 0 writes where it listens, the others read it. The file is hostile until
// it has been read whole; one that an earlier run left is told by its time and by its nonce, which the coordinator must know.
#pragma once
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "rendezvous.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What the file says.
struct MeetingFile {
  std::uint64_t nonce = 0;
  long long time = 0;  ///< seconds since 1970
  int size = 0;
  std::vector<Address> addresses{};
};

/// What stands in the file: lines of a word and a value, closed by "end".
std::string to_text(const MeetingFile& m);

/// Throws FileError for anything else than to_text writes: `path` is for the message.
MeetingFile parse_meeting(const std::string& text, const std::string& path);

/// Seconds since 1970 by this machine's clock.
long long unix_seconds();

/// All ranks give the same path. Collective; blocking. `started`: when this rank did (for tests).
std::unique_ptr<Client> meet_in_file(const std::string& path, RankPlace place, long long started = unix_seconds());

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "file.ipp"
#endif
