// SPDX-License-Identifier: Apache-2.0
// The header of a checkpoint file, as text: the layout of safetensors (https://github.com/huggingface/safetensors), so that any
// tool that knows it reads the tensors. A strict writer, and a reader of what that writes: each table has one text, and another
// text is refused. No JSON library is needed for the few forms that there are.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint_format.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Words of a file by name, in its `__metadata__`: what a manifest says of its shards.
using FileMetadata = std::map<std::string, std::string>;

/// What the header of a file says.
struct FileTable {
  std::string written_by;
  FileMetadata facts;
  std::vector<SectionInfo> sections;  ///< in the order of the file

  /// Reads and writes the table as format 1 has it.
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & written_by & sections); }
};

/// UTF-8 without control characters: what a name in a file may be, and what a message may repeat of it.
bool is_plain_text(std::string_view text);

namespace detail {
inline constexpr std::string_view object_prefix = "object/", hash_prefix = "xxh64/";
/// 16 digits.
std::string hex(std::uint64_t value);
/// The name of a type in safetensors, "F32"; of an object "U8".
const char* safetensors_type(SectionType type);
/// Where the hash of the header stands in it: 16 digits, which are zeros while it is made.
inline constexpr std::string_view safetensors_begin = R"({"__metadata__":{"skein_checkpoint":")";
inline constexpr std::string_view safetensors_hash = R"("header_xxh64":")";
/// Headers that are longer are refused by every tool.
inline constexpr std::uint64_t longest_header = 100'000'000;

/// Gives the sections their offsets, and the bytes of the header that will say so. The sections come in the order of the widths
/// of their values, the widest first, so that each is aligned.
std::uint64_t lay_out(FileTable& table);
/// The header with its length in front and its hash in it: a multiple of 64 bytes. Offsets, sizes and hashes are there.
std::string safetensors_header(const FileTable& table);
/// The hash that a header of a file should have, with its length in front.
std::uint64_t hash_of_header(std::string header);
/// Does it have that hash.
bool hash_fits(std::string_view header);
/// The table of a header whose hash fits, with its length in front, and the same text for it again; throws FileError otherwise.
FileTable read_safetensors_header(std::string_view header, const std::string& path);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "safetensors.ipp"
#endif
