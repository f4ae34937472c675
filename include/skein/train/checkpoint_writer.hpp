// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint: named tensors and objects in one file that appears whole or not at all. Tensors are not copied: the
// writer keeps pointers and reads them in commit(). section.hpp has the format.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "archive.hpp"
#include "atomic_file.hpp"
#include "hash.hpp"
#include "section.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Who wrote a file, so that a difference can be reported: version, instruction set, compiler.
inline std::string build_fingerprint() {
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

/// CheckpointWriter w;  w.add("parameters/0.weight", extents, data, pitch);  w.add_object("loader", loader);  w.commit(path);
class CheckpointWriter {
 public:
  /// The values of a tensor in host memory whose rows (its last extent) are `pitch` scalars apart. They must live until commit().
  template <class T> void add(std::string_view name, const Extents& extents, const T* data, long pitch) {
    if (pitch < extents.last())
      throw ArgumentError("checkpoint section '" + std::string(name) + "': rows of " + std::to_string(extents.last()) +
                          " values cannot be " + std::to_string(pitch) + " apart");
    const auto row = static_cast<std::uint64_t>(extents.last()) * sizeof(T);
    Entry& entry = make(name, section_type<T>(), {extents.e, extents.e + extents.rank},
                        static_cast<std::uint64_t>(extents.count()) * sizeof(T));
    entry.data = reinterpret_cast<const std::byte*>(data);
    entry.row_bytes = row;
    entry.pitch_bytes = static_cast<std::uint64_t>(pitch) * sizeof(T);
  }
  /// A flat run of values in host memory, which must live until commit().
  template <class T> void add(std::string_view name, std::span<const T> values) {
    Entry& entry = make(name, section_type<T>(), {static_cast<std::int64_t>(values.size())}, values.size_bytes());
    entry.data = reinterpret_cast<const std::byte*>(values.data());
    entry.row_bytes = entry.pitch_bytes = values.size_bytes();
  }
  /// An object by its serialize(), taken now.
  template <class T> void add_object(std::string_view name, const T& object) {
    std::vector<std::byte> bytes = to_bytes(object);
    Entry& entry = make(name, SectionType::object, {static_cast<std::int64_t>(bytes.size())}, bytes.size());
    entry.owned = std::move(bytes);
    entry.data = entry.owned.data();
    entry.row_bytes = entry.pitch_bytes = entry.owned.size();
  }

  std::size_t size() const { return entries_.size(); }

  /// Writes the file; after it has returned, it is on the disk under its name. Throws FileError, and then the old file is as it
  /// was.
  void commit(const std::string& path) {
    AtomicFile file(path);
    write(file);
    file.commit();
  }
  /// The bytes alone: the caller commits, say when all ranks have written theirs.
  void write(AtomicFile& file) {
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
        {}, checkpoint_version, 0, entries_.size(), table_bytes, hash64(bytes.data(), bytes.size()), detail::aligned(offset), 0,
        0};
    std::memcpy(header.magic, detail::checkpoint_magic, sizeof header.magic);
    header.hash = hash64(&header, sizeof header - 8);
    file.write_at(0, &header, sizeof header);
  }

  /// What the table of a file holds.
  struct Table {
    std::string written_by;
    std::vector<SectionInfo> sections;
    template <class Archive> void serialize(Archive& archive, unsigned) { (archive & written_by & sections); }
  };

 private:
  struct Entry {
    SectionInfo info;
    const std::byte* data = nullptr;
    std::uint64_t row_bytes = 0, pitch_bytes = 0;
    std::vector<std::byte> owned;
  };

  Entry& make(std::string_view name, SectionType type, std::vector<std::int64_t> extents, std::uint64_t bytes) {
    if (name.empty() || name.size() > detail::longest_section_name)
      throw ArgumentError("the name of a checkpoint section has 1 to 512 bytes; this one has " + std::to_string(name.size()));
    if (!names_.insert(std::string(name)).second)
      throw ArgumentError("checkpoint section '" + std::string(name) + "' was added twice: each name once");
    auto entry = std::make_unique<Entry>();
    entry->info = {std::string(name), type, std::move(extents), 0, bytes, 0};
    entries_.push_back(std::move(entry));
    return *entries_.back();
  }
  static void write_zeros(AtomicFile& file, std::uint64_t from, std::uint64_t to) {
    const char zeros[detail::section_alignment] = {};
    file.write_at(static_cast<long long>(from), zeros, to - from);
  }
  /// Rows without their padding, gathered into pieces of a megabyte where there is padding. Returns the hash.
  static std::uint64_t write_values(AtomicFile& file, const Entry& entry, std::uint64_t offset) {
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

  std::vector<std::unique_ptr<Entry>> entries_;
  std::set<std::string> names_;
};

}  // namespace skein::inline SKEIN_ABI::train
