// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_writer.hpp.
#pragma once
#include "../core/text.hpp"
#include "checkpoint_writer.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string build_fingerprint() {
#define SKEIN_TEXT_OF(x) #x
#define SKEIN_TEXT(x) SKEIN_TEXT_OF(x)
  std::string text = "skein " SKEIN_TEXT(SKEIN_VERSION_MAJOR) "." SKEIN_TEXT(SKEIN_VERSION_MINOR) "." SKEIN_TEXT(
      SKEIN_VERSION_PATCH) ", abi " SKEIN_TEXT(SKEIN_ABI);
#undef SKEIN_TEXT
#undef SKEIN_TEXT_OF
#if defined(__clang__)
  text += ", clang " __clang_version__;
#elif defined(__GNUC__)
  text += ", gcc " __VERSION__;
#endif
  return text;
}

SKEIN_INLINE void CheckpointWriter::commit(const std::string& path) {
  AtomicFile file(path);
  write(file);
  file.commit();
}

SKEIN_INLINE void CheckpointWriter::write(AtomicFile& file) {
  const std::string by = build_fingerprint();
  Table table{by, {}};
  for (const auto& entry : entries_) table.sections.push_back(entry->info);
  const std::uint64_t table_bytes = to_bytes(table).size();  // offsets and hashes have fixed widths
  std::uint64_t offset = detail::header_bytes + table_bytes;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    write_zeros(file, offset, detail::aligned(offset));
    SectionInfo& info = table.sections[i];
    info.offset = detail::aligned(offset);
    info.hash = write_values(file, *entries_[i], info.offset);
    offset = info.offset + info.bytes;
  }
  write_zeros(file, offset, detail::aligned(offset));

  const std::vector<std::byte> bytes = to_bytes(table);
  file.write_at(detail::header_bytes, bytes.data(), bytes.size());
  detail::CheckpointHeader header{
      {}, checkpoint_version, 0, entries_.size(), table_bytes, hash64(bytes.data(), bytes.size()), detail::aligned(offset), 0, 0};
  std::memcpy(header.magic, detail::checkpoint_magic, sizeof header.magic);
  header.hash = hash64(&header, sizeof header - 8);
  file.write_at(0, &header, sizeof header);
}

SKEIN_INLINE void CheckpointWriter::add_rows(std::string_view name, SectionType type, const Extents& extents, const void* data,
                                             long pitch, std::size_t scalar_bytes) {
  if (pitch < extents.last())
    throw ArgumentError(text("checkpoint section '{}': rows of {} values cannot be {} apart", name, extents.last(), pitch));
  Entry& entry =
      make(name, type, {extents.e, extents.e + extents.rank}, static_cast<std::uint64_t>(extents.count()) * scalar_bytes);
  entry.data = static_cast<const std::byte*>(data);
  entry.row_bytes = static_cast<std::uint64_t>(extents.last()) * scalar_bytes;
  entry.pitch_bytes = static_cast<std::uint64_t>(pitch) * scalar_bytes;
}

SKEIN_INLINE void CheckpointWriter::add_bytes(std::string_view name, std::vector<std::byte>&& bytes) {
  Entry& entry = make(name, SectionType::object, {static_cast<std::int64_t>(bytes.size())}, bytes.size());
  entry.owned = std::move(bytes);
  entry.data = entry.owned.data();
  entry.row_bytes = entry.pitch_bytes = entry.owned.size();
}

SKEIN_INLINE CheckpointWriter::Entry& CheckpointWriter::make(std::string_view name, SectionType type,
                                                             std::vector<std::int64_t> extents, std::uint64_t bytes) {
  if (name.empty() || name.size() > detail::longest_section_name)
    throw ArgumentError("the name of a checkpoint section has 1 to 512 bytes; this one has " + std::to_string(name.size()));
  if (!names_.insert(std::string(name)).second)
    throw ArgumentError("checkpoint section '" + std::string(name) + "' was added twice: each name once");
  auto entry = std::make_unique<Entry>();
  entry->info = {std::string(name), type, std::move(extents), 0, bytes, 0};
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

SKEIN_INLINE void CheckpointWriter::write_zeros(AtomicFile& file, std::uint64_t from, std::uint64_t to) {
  const char zeros[detail::section_alignment] = {};
  file.write_at(static_cast<long long>(from), zeros, to - from);
}

SKEIN_INLINE std::uint64_t CheckpointWriter::write_values(AtomicFile& file, const Entry& entry, std::uint64_t offset) {
  Hash64 hash;
  const auto put = [&](const std::byte* bytes, std::size_t count) {
    hash.update(bytes, count);
    file.write_at(static_cast<long long>(offset), bytes, count);
    offset += count;
  };
  if (entry.row_bytes == entry.pitch_bytes || entry.info.bytes == 0) {
    put(entry.data, entry.info.bytes);
    return hash.value();
  }
  std::vector<std::byte> piece;
  const std::uint64_t rows = entry.info.bytes / entry.row_bytes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::byte* values = entry.data + row * entry.pitch_bytes;
    piece.insert(piece.end(), values, values + entry.row_bytes);
    if (piece.size() >= std::size_t{1} << 20 || row + 1 == rows) {
      put(piece.data(), piece.size());
      piece.clear();
    }
  }
  return hash.value();
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
