// SPDX-License-Identifier: Apache-2.0
// The bodies of in_archive.hpp.
#pragma once
#include "in_archive.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE InArchive::InArchive(std::span<const std::byte> bytes, std::string path, long long offset, std::size_t budget)
    : bytes_(bytes), path_(std::move(path)), offset_(offset), budget_(bytes.size() + budget) {}

SKEIN_INLINE void InArchive::finish() const {
  if (left() != 0) refuse(text("{} bytes are left over: this is another object than the one that is read", left()));
}

SKEIN_INLINE void InArchive::refuse(const std::string& what) const {
  throw FileError(path_, offset_ + static_cast<long long>(next_), what);
}

SKEIN_INLINE unsigned InArchive::begin_object(unsigned known) {
  const std::size_t start = next_;
  std::uint32_t version = 0;
  *this& version;
  if (version > known)
    throw VersionError(path_, offset_ + static_cast<long long>(start),
                       text("an object of version {}, but this program knows its class up to version {}: it was written by a "
                            "later program (or is another object)",
                            version, known));
  if (++depth_ > detail::deepest) refuse("objects are nested deeper than 64");
  return version;
}

SKEIN_INLINE bool InArchive::get_bool() {
  unsigned char byte = 0;
  *this& byte;
  if (byte > 1) refuse(text("a truth value is 0 or 1, here it is {}", byte));
  return byte == 1;
}

SKEIN_INLINE std::size_t InArchive::get_count(std::size_t least, std::size_t memory) {
  std::uint64_t count = 0;
  *this& count;
  if (count > left() / least)
    refuse(text("a count of {} elements needs at least {} bytes each, but only {} bytes are left", count, least, left()));
  if (count > (budget_ - charged_) / memory)
    refuse(text("a count of {} elements would take more memory than an archive of {} bytes may ask for", count, bytes_.size()));
  charged_ += static_cast<std::size_t>(count) * memory;
  return static_cast<std::size_t>(count);
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
