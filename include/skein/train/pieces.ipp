// SPDX-License-Identifier: Apache-2.0
// The bodies of pieces.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "../core/text.hpp"
#include "pieces.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string piece_name(const PieceName& piece) {
  return text("{}[{}:{} of {}]", piece.section, piece.begin, piece.end, joined(piece.extents, "x"));
}

SKEIN_INLINE std::optional<PieceName> parse_piece(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open == name.npos) return {};
  PieceName piece{std::string(name.substr(0, open)), {}, 0, 0};
  std::string_view rest = name.substr(open + 1);
  const auto number = [&](std::string_view words_before) {
    std::int64_t value = -1;
    if (!rest.starts_with(words_before)) return value;
    rest.remove_prefix(words_before.size());
    const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (fault != std::errc()) return std::int64_t{-1};
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
  };
  piece.begin = number("");
  piece.end = number(":");
  for (std::int64_t extent = number(" of "); extent >= 0 && piece.extents.size() < detail::most_extents; extent = number("x"))
    piece.extents.push_back(extent);
  if (piece.begin < 0 || piece.begin >= piece.end || piece_name(piece) != name) return {};
  return piece;
}

SKEIN_INLINE std::vector<GatheredSection> gather_sections(const std::vector<FileTable>& files, const std::string& path) {
  struct Found {
    PieceName name;
    bool whole;
    SectionType type;
    SectionPiece place;
  };
  std::map<std::string, std::vector<Found>> by_name;
  for (std::size_t f = 0; f < files.size(); ++f)
    for (const SectionInfo& s : files[f].sections) {
      const auto piece = s.type == SectionType::object ? std::nullopt : parse_piece(s.name);
      const std::int64_t count = static_cast<std::int64_t>(s.bytes) / value_bytes(s.type);
      by_name[piece ? piece->section : s.name].push_back(
          {piece ? *piece : PieceName{s.name, s.extents, 0, count}, !piece, s.type, {f, s.offset, s.bytes, s.hash}});
      if (piece && count != piece->end - piece->begin)
        throw FileError(path, -1, "the piece '" + s.name + "' of a section has another number of values");
    }
  std::vector<GatheredSection> sections;
  for (auto& [name, found] : by_name) {
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.name.begin < b.name.begin; });
    const Found& first = found.front();
    GatheredSection section{{name, first.type, first.name.extents, first.place.offset, 0, first.place.hash}, {}};
    std::uint64_t values = 1;
    bool fits = found.size() == 1 || !first.whole;
    for (const std::int64_t extent : first.name.extents)
      fits = !__builtin_mul_overflow(values, static_cast<std::uint64_t>(extent), &values) && fits;
    std::int64_t next = 0;
    for (const Found& f : found) {
      fits = fits && f.name.begin == next && f.type == first.type && f.name.extents == first.name.extents;
      next = f.name.end;
      section.pieces.push_back(f.place);
      section.info.bytes += f.place.bytes;
    }
    if (!fits || static_cast<std::uint64_t>(next) != values)
      throw FileError(path, -1, "section '" + name + "' is not whole in its files, or is there twice");
    sections.push_back(std::move(section));
  }
  return sections;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
