// SPDX-License-Identifier: Apache-2.0
// A rendezvous through a file in a shared folder: rank 0 writes where it listens, and a secret of 128 random bits; the others
// read it. Only its owner may read or write the file, and ranks believe none of another user. Its text is hostile until it has
// been read whole; one that an earlier run left is told by its time and by its secret, which the coordinator must have.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rendezvous.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// What the file says.
struct MeetingFile {
  Nonce secret{};
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

/// Writes the file, which this user alone may read. Throws FileError, with whose it is where another user has that path.
void write_meeting(const std::string& path, const MeetingFile& m);
/// Reads it. Nothing, and why, where there is none yet; throws FileError where another user's is there, or a symbolic link.
std::optional<MeetingFile> read_meeting(const std::string& path, std::string& why);

/// A folder of this user that no other may enter: `folder`, which is made where nothing is there. Throws FileError, with whose it
/// is, for any other.
void make_private_folder(const std::string& folder);
/// It is there, and such a folder.
bool is_private_folder(const std::string& folder);

/// All ranks give the same path. Collective; blocking. `started`: when this rank did (for tests).
std::unique_ptr<Client> meet_in_file(const std::string& path, RankPlace place, long long started = unix_seconds());

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "file.ipp"
#endif
