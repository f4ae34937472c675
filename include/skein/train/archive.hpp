// SPDX-License-Identifier: Apache-2.0
// Objects to bytes and back, through types' own serialize(Archive&, unsigned): what checkpoints store beside their tensors.
// Boost's stock archives are not used for files: a 60-byte file can make them claim gigabytes.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "in_archive.hpp"
#include "out_archive.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// The bytes of an object.
template <class T> std::vector<std::byte> to_bytes(const T& object) {
  OutArchive archive;
  (archive & object);
  return archive.take();
}

/// The bytes of an array or a text: a std::span that is made of a range costs each program the checks of what a range is.
inline std::span<const std::byte> byte_span(const std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size()}; }
inline std::span<const std::byte> byte_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Reads an object of exactly these bytes. Throws FileError (path and offset are for its message) or VersionError.
template <class T>
void from_bytes(std::span<const std::byte> bytes, T& object, std::string path = "archive in memory", long long offset = 0) {
  InArchive archive(bytes, std::move(path), offset);
  (archive & object);
  archive.finish();
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
