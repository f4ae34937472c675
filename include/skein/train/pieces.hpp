// SPDX-License-Identifier: Apache-2.0
// Sections that several files have together. A piece is a flat range of a section's logical values, and its name says which:
// "parameters/0.weight[0:800 of 5x5x1x64]". Which pieces make a section is found from the tables of the files alone, and believed
// only where they make it whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Which section a piece is of, and which of its values it has.
struct PieceName {
  std::string section;
  std::vector<std::int64_t> extents;  ///< of the whole section
  std::int64_t begin = 0, end = 0;
};
/// The name of a piece, as its file has it.
std::string piece_name(const PieceName& piece);
/// Takes the name of a piece apart; nothing where it is that of a whole section.
std::optional<PieceName> parse_piece(std::string_view name);

/// A run of bytes of a section, in one of the files.
struct SectionPiece {
  std::size_t file = 0;
  std::uint64_t offset = 0, bytes = 0, hash = 0;
};
/// A section, and where its values are, in their order.
struct GatheredSection {
  SectionInfo info;
  std::vector<SectionPiece> pieces;
};
/// The sections of all files, in the order of their names. Throws FileError, with the path, where a section is there twice, or is
/// not whole.
std::vector<GatheredSection> gather_sections(const std::vector<FileTable>& files, const std::string& path);

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "pieces.ipp"
#endif
