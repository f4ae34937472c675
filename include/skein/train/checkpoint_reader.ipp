// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_reader.hpp.
#pragma once
#include "../core/hash.hpp"
#include "checkpoint_reader.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::uint64_t CheckpointReader::hash() const {
  Fnv1a all;
  for (const SectionInfo& s : table_.sections) all.add(s.name).add(s.hash);
  return all.value();
}

SKEIN_INLINE CheckpointReader::CheckpointReader(InputFile file, Verify verify) : file_(std::move(file)) {
  read_table(read_header());
  check_layout();
  if (verify == Verify::Whole) this->verify();
}

SKEIN_INLINE void CheckpointReader::finish() const {
  std::string names;
  int count = 0;
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i] && ++count <= 5) names += (names.empty() ? "'" : ", '") + table_.sections[i].name + "'";
  if (count > 0)
    throw FileError(path(), -1,
                    std::to_string(count) + " section(s) of the file have no place here: " + names + (count > 5 ? ", ..." : "") +
                        "; the file was saved from another model or optimizer");
}

SKEIN_INLINE void CheckpointReader::verify() const {
  check_zeros(detail::header_bytes + table_bytes_);
  for (const SectionInfo& info : table_.sections) {
    read_values(info, nullptr, info.bytes, info.bytes);
    check_zeros(info.offset + info.bytes);
  }
}

SKEIN_INLINE void CheckpointReader::fail(std::uint64_t offset, const std::string& what) const {
  throw FileError(path(), static_cast<long long>(offset), what);
}

SKEIN_INLINE detail::CheckpointHeader CheckpointReader::read_header() const {
  const auto size = static_cast<std::uint64_t>(file_.size());
  detail::CheckpointHeader header;
  char magic[sizeof header.magic] = {};
  file_.read_at(0, magic, size < sizeof magic ? size : sizeof magic);
  if (std::memcmp(magic, detail::checkpoint_magic, sizeof magic) != 0)
    fail(0, "is no skein checkpoint: another file begins like this");
  if (size < sizeof header) fail(size, "was cut: it ends within its header");
  file_.read_at(0, &header, sizeof header);
  if (header.version > checkpoint_version)
    throw VersionError(path(), 8,
                       "has checkpoint format " + std::to_string(header.version) + ", but this program knows up to " +
                           std::to_string(checkpoint_version) + ": take a later skein");
  if (header.hash != hash64(&header, sizeof header - 8)) fail(0, "the header is damaged: its hash does not fit");
  if (header.version == 0 || header.zero != 0 || header.more_zero != 0)
    fail(8, "the header holds fields that format 1 does not have");
  if (header.file_bytes != size)
    fail(size, "has " + std::to_string(size) + " bytes, but " + std::to_string(header.file_bytes) + " were written: it was " +
                   (size < header.file_bytes ? "cut" : "appended to"));
  if (header.table_bytes > size - sizeof header) fail(24, "the table is said to be longer than the file");
  return header;
}

SKEIN_INLINE void CheckpointReader::read_table(const detail::CheckpointHeader& header) {
  std::vector<std::byte> bytes(header.table_bytes);
  file_.read_at(sizeof header, bytes.data(), bytes.size());
  if (header.table_hash != hash64(bytes.data(), bytes.size())) fail(sizeof header, "the table is damaged: its hash does not fit");
  from_bytes(bytes, table_, path(), sizeof header);
  if (header.sections != table_.sections.size())
    fail(16, "the header counts " + std::to_string(header.sections) + " sections, the table " +
                 std::to_string(table_.sections.size()));
  table_bytes_ = header.table_bytes;
}

SKEIN_INLINE void CheckpointReader::check_layout() {
  std::uint64_t offset = detail::aligned(detail::header_bytes + table_bytes_);
  const auto size = static_cast<std::uint64_t>(file_.size());
  taken_.assign(table_.sections.size(), false);
  for (std::size_t i = 0; i < table_.sections.size(); ++i) {
    const SectionInfo& info = table_.sections[i];
    if (info.name.empty() || info.name.size() > detail::longest_section_name || !by_name_.emplace(info.name, i).second)
      fail(detail::header_bytes,
           "section " + std::to_string(i) + " of the table has no name, too long a name, or another's name");
    if (value_bytes(info.type) == 0) fail(detail::header_bytes, "section '" + info.name + "' holds values of an unknown type");
    if (info.offset != offset || info.offset > size || info.bytes > size - info.offset)
      fail(detail::header_bytes, "section '" + info.name + "' is not where it must be: " + std::to_string(info.bytes) +
                                     " bytes at byte " + std::to_string(info.offset));
    if (info.extents.size() > detail::most_extents || bytes_of(info) != info.bytes)
      fail(detail::header_bytes,
           "section '" + info.name + "' is said to hold " + info.text() + " in " + std::to_string(info.bytes) + " bytes");
    offset = detail::aligned(info.offset + info.bytes);
  }
  if (offset != size) fail(size, "the sections of the table end at byte " + std::to_string(offset) + ", not where the file ends");
}

SKEIN_INLINE std::uint64_t CheckpointReader::bytes_of(const SectionInfo& info) {
  std::uint64_t bytes = static_cast<std::uint64_t>(value_bytes(info.type));
  for (const std::int64_t extent : info.extents)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return ~std::uint64_t{0};
  return bytes;
}

SKEIN_INLINE std::size_t CheckpointReader::find(std::string_view name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  std::string near;
  for (const SectionInfo& info : table_.sections)
    if (near.size() < 200) near += (near.empty() ? "" : ", ") + info.name;
  throw FileError(path(), -1,
                  "has no section '" + std::string(name) + "'; it has: " + (near.empty() ? "none" : near) +
                      (near.size() < 200 ? "" : ", ..."));
}

SKEIN_INLINE const SectionInfo& CheckpointReader::expect(std::string_view name, SectionType type,
                                                         std::vector<std::int64_t> extents) {
  const std::size_t at = find(name);
  const SectionInfo& info = table_.sections[at];
  if (info.type != type || info.extents != extents) {
    SectionInfo wanted;
    wanted.type = type;
    wanted.extents = std::move(extents);
    fail(info.offset, "section '" + info.name + "' holds " + info.text() + ", but here it must be " + wanted.text() +
                          ": the file was saved from another network or scalar type");
  }
  taken_[at] = true;
  return info;
}

SKEIN_INLINE void CheckpointReader::read_values(const SectionInfo& info, std::byte* to, std::uint64_t row_bytes,
                                                std::uint64_t pitch_bytes) const {
  Hash64 hash;
  if (to && (row_bytes == pitch_bytes || info.bytes == 0)) {
    file_.read_at(static_cast<long long>(info.offset), to, info.bytes);
    hash.update(to, info.bytes);
  } else {
    std::vector<std::byte> piece(info.bytes < piece_bytes ? info.bytes : piece_bytes);
    for (std::uint64_t done = 0; done < info.bytes;) {
      const std::uint64_t count = info.bytes - done < piece.size() ? info.bytes - done : piece.size();
      file_.read_at(static_cast<long long>(info.offset + done), piece.data(), count);
      hash.update(piece.data(), count);
      if (to) scatter(piece.data(), done, count, to, row_bytes, pitch_bytes);
      done += count;
    }
  }
  if (hash.value() != info.hash) fail(info.offset, "section '" + info.name + "' is damaged: its hash does not fit");
}

SKEIN_INLINE void CheckpointReader::scatter(const std::byte* from, std::uint64_t first, std::uint64_t count, std::byte* to,
                                            std::uint64_t row_bytes, std::uint64_t pitch_bytes) {
  while (count > 0) {
    const std::uint64_t within = first % row_bytes, n = row_bytes - within < count ? row_bytes - within : count;
    std::memcpy(to + first / row_bytes * pitch_bytes + within, from, n);
    from += n;
    first += n;
    count -= n;
  }
}

SKEIN_INLINE void CheckpointReader::check_zeros(std::uint64_t from) const {
  char gap[detail::section_alignment];
  const std::uint64_t count = detail::aligned(from) - from;
  file_.read_at(static_cast<long long>(from), gap, count);
  for (std::uint64_t i = 0; i < count; ++i)
    if (gap[i] != 0) fail(from + i, "the gap between two sections is damaged: it must be zero");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
