// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_writer.hpp.
#pragma once
#include <algorithm>

#include "../core/text.hpp"
#include "checkpoint_writer.hpp"
#include "pieces.hpp"

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

SKEIN_INLINE WrittenFile CheckpointWriter::write(AtomicFile& file) {
  WrittenFile made{{build_fingerprint(), facts_, {}}, 0, 0};
  std::vector<const Entry*> ordered;
  for (const std::int64_t width : {8, 4, 2, 1})
    for (const auto& entry : entries_)
      if (value_bytes(entry->info.type) == width) ordered.push_back(entry.get());
  for (const Entry* entry : ordered) made.table.sections.push_back(entry->info);
  made.bytes = detail::lay_out(made.table);
  if (made.bytes > detail::longest_header)
    throw ArgumentError(
        text("the names of {} sections do not fit into one file: its header would have {} bytes, more than tools "
             "for such files read",
             entries_.size(), made.bytes));
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    SectionInfo& info = made.table.sections[i];
    info.hash = write_values(file, *ordered[i], info.offset);
    made.bytes = info.offset + info.bytes;
  }
  const std::string header = detail::safetensors_header(made.table);
  file.write_at(0, header.data(), header.size());
  made.header_hash = detail::hash_of_header(header);
  return made;
}

SKEIN_INLINE void CheckpointWriter::add_fact(const std::string& name, const std::string& words) {
  if (!is_plain_text(name) || !is_plain_text(words) || name == "written_by" || name.starts_with("xxh64/"))
    throw ArgumentError("the words of a checkpoint file are UTF-8 without control characters, under names of their own");
  facts_[name] = words;
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

SKEIN_INLINE void CheckpointWriter::add_values(std::string_view name, SectionType type, const Extents& extents,
                                               std::int64_t begin, std::int64_t end, const void* first, long pitch) {
  const auto width = static_cast<std::uint64_t>(value_bytes(type));
  if (begin == 0 && end == extents.count()) return add_rows(name, type, extents, first, pitch, width);
  if (pitch < extents.last() || begin < 0 || begin >= end || end > extents.count())
    throw ArgumentError(text("checkpoint section '{}': there is no piece [{}, {}) of it", name, begin, end));
  const std::vector<std::int64_t> whole{extents.e, extents.e + extents.rank};
  Entry& entry = make(piece_name({std::string(name), whole, begin, end}), type, {end - begin},
                      static_cast<std::uint64_t>(end - begin) * width);
  entry.data = static_cast<const std::byte*>(first);
  entry.row_bytes = static_cast<std::uint64_t>(extents.last()) * width;
  entry.pitch_bytes = static_cast<std::uint64_t>(pitch) * width;
  entry.column = static_cast<std::uint64_t>(begin % extents.last()) * width;
}

SKEIN_INLINE void CheckpointWriter::add_object_bytes(std::string_view name, std::vector<std::byte>&& bytes) {
  Entry& entry = make(name, SectionType::object, {static_cast<std::int64_t>(bytes.size())}, bytes.size());
  entry.owned = std::move(bytes);
  entry.data = entry.owned.data();
  entry.row_bytes = entry.pitch_bytes = entry.owned.size();
}

SKEIN_INLINE CheckpointWriter::Entry& CheckpointWriter::make(std::string_view name, SectionType type,
                                                             std::vector<std::int64_t> extents, std::uint64_t bytes) {
  if (name.empty() || name.size() > detail::longest_section_name)
    throw ArgumentError(skein::text("the name of a checkpoint section has 1 to 512 bytes; this one has {}", name.size()));
  if (!names_.insert(std::string(name)).second)
    throw ArgumentError("checkpoint section '" + std::string(name) + "' was added twice: each name once");
  if (!is_plain_text(name) || (type != SectionType::object && name.starts_with(detail::object_prefix)))
    throw ArgumentError(
        "the name of a checkpoint section is UTF-8 without control characters, and that of a tensor does not begin with "
        "'object/'");
  auto entry = std::make_unique<Entry>();
  entry->info = {std::string(name), type, std::move(extents), 0, bytes, 0};
  entries_.push_back(std::move(entry));
  return *entries_.back();
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
  const std::byte* values = entry.data;
  std::uint64_t column = entry.column;
  for (std::uint64_t left = entry.info.bytes; left > 0;) {
    const std::uint64_t count = std::min(entry.row_bytes - column, left);
    piece.insert(piece.end(), values, values + count);
    values += count + entry.pitch_bytes - entry.row_bytes;
    column = 0;
    left -= count;
    if (piece.size() >= std::size_t{1} << 20 || left == 0) {
      put(piece.data(), piece.size());
      piece.clear();
    }
  }
  return hash.value();
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
