// SPDX-License-Identifier: Apache-2.0
// The format of a checkpoint file, version 2: that of safetensors. All little-endian:
//
//     u64                bytes of the header, so that the data begin at a multiple of 64
//     header             JSON: "__metadata__", which begins with skein_checkpoint (the version) and header_xxh64 (the XXH64 of
//                        length and header, with zeros in place of its own digits), then who wrote it, then an XXH64 for each
//                        section; and for each section dtype, shape and place; spaces to its end
//     sections           one behind the other, those of the widest values first
//
// A tensor's section holds its logical values, row-major, without the padding of rows; an object's holds its archive, as the U8
// tensor "object/NAME". Each table has one text, so a reader compares the header with the text that it would write, and every
// bit of the file is covered by a hash. Format 1 (CheckpointHeader, with its table in an archive and gaps of zeros) is read.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "../core/config.hpp"
#include "archive_traits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// The format that this program writes, and the latest that it reads.
inline constexpr std::uint32_t checkpoint_version = 2;

/// What a section holds. The numbers are part of the format.
enum class SectionType : std::uint8_t {
  object = 0,
  float32 = 1,
  float64 = 2,
  int8 = 3,
  int16 = 4,
  int32 = 5,
  int64 = 6,
  uint8 = 7,
  uint16 = 8,
  uint32 = 9,
  uint64 = 10,
  float16 = 11,
  bfloat16 = 12
};

/// Bytes of one value; 0 for a type that this program does not know.
constexpr int value_bytes(SectionType type) {
  constexpr int bytes[] = {1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2};
  const auto i = static_cast<unsigned>(type);
  return i < sizeof bytes / sizeof *bytes ? bytes[i] : 0;
}
/// The type's name, as messages print it.
constexpr const char* type_name(SectionType type) {
  constexpr const char* names[] = {"object", "float32", "float64", "int8",   "int16",   "int32",   "int64",
                                   "uint8",  "uint16",  "uint32",  "uint64", "float16", "bfloat16"};
  return value_bytes(type) > 0 ? names[static_cast<unsigned>(type)] : "an unknown type";
}

/// The section type of a scalar. Specialise it for half-precision types.
template <class T> constexpr SectionType section_type() {
  using enum SectionType;
  if constexpr (std::is_same_v<T, float>) return float32;
  else if constexpr (std::is_same_v<T, double>) return float64;
  else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>,
                  "a tensor section holds float, double or integers: store anything else with add_object");
    constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<SectionType>((std::is_signed_v<T> ? 3 : 7) + log);
  }
}

/// A line of the table.
struct SectionInfo {
  std::string name;
  SectionType type = SectionType::object;
  std::vector<std::int64_t> extents;  // logical; of an object its number of bytes
  std::uint64_t offset = 0;           // in the file
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  // XXH64

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & name & type & extents & offset & bytes & hash);
  }
  /// float32 (5, 5, 1, 6), for messages.
  std::string text() const;
};

namespace detail {
inline constexpr char checkpoint_magic[8] = {'\x89', 's', 'k', 'e', 'i', 'n', '\r', '\n'};
inline constexpr std::uint64_t header_bytes = 64, section_alignment = 64;
inline constexpr std::size_t longest_section_name = 512, most_extents = 8;

constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + section_alignment - 1) / section_alignment * section_alignment;
}
static_assert(std::endian::native == std::endian::little,
              "checkpoints are little-endian, and so far read only on such processors");

/// The header of a file of format 1, as it stands there.
struct CheckpointHeader {
  char magic[8];
  std::uint32_t version, zero;
  std::uint64_t sections, table_bytes, table_hash, file_bytes, more_zero, hash;
};
static_assert(sizeof(CheckpointHeader) == header_bytes && std::is_trivially_copyable_v<CheckpointHeader>);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "checkpoint_format.ipp"
#endif
