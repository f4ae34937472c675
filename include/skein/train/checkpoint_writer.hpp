// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint: named tensors and objects in one file that appears whole or not at all. Tensors are not copied: the
// writer keeps pointers and reads them in commit(). checkpoint_format.hpp has the format.
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
#include "../core/atomic_file.hpp"
#include "hash.hpp"
#include "safetensors.hpp"
#include "checkpoint_format.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Who wrote a file, so that a difference can be reported: version, instruction set, compiler.
std::string build_fingerprint();

/// A file that was written, as its reader will see it.
struct WrittenFile {
  FileTable table;
  std::uint64_t bytes = 0, header_hash = 0;

  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & table & bytes & header_hash); }
};

/// CheckpointWriter w;  w.add("parameters/0.weight", extents, data, pitch);  w.add_object("loader", loader);  w.commit(path);
class CheckpointWriter {
 public:
  /// The values of a tensor in host memory whose rows (its last extent) are `pitch` scalars apart. They must live until commit().
  template <class T> void add(std::string_view name, const Extents& extents, const T* data, long pitch) {
    add_rows(name, section_type<T>(), extents, data, pitch, sizeof(T));
  }
  /// The values [begin, end) of such a tensor, of which `first` is the first: all of them, or a piece, whose name in the file
  /// says so.
  void add_values(std::string_view name, SectionType type, const Extents& extents, std::int64_t begin, std::int64_t end,
                  const void* first, long pitch);
  /// A flat run of values in host memory, which must live until commit().
  template <class T> void add(std::string_view name, std::span<const T> values) {
    Entry& entry = make(name, section_type<T>(), {static_cast<std::int64_t>(values.size())}, values.size_bytes());
    entry.data = reinterpret_cast<const std::byte*>(values.data());
    entry.row_bytes = entry.pitch_bytes = values.size_bytes();
  }
  /// An object by its serialize(), taken now.
  template <class T> void add_object(std::string_view name, const T& object) { add_object_bytes(name, to_bytes(object)); }

  /// An object that is bytes already, as an archive made them.
  void add_object_bytes(std::string_view name, std::vector<std::byte>&& bytes);
  /// Words that stand in the header of the file. Throws ArgumentError for names and words that are no plain text.
  void add_fact(const std::string& name, const std::string& words);

  std::size_t size() const { return entries_.size(); }

  /// Writes the file; after it has returned, it is on the disk under its name. Throws FileError, and then the old file is as it
  /// was.
  void commit(const std::string& path);
  /// The bytes alone: the caller commits, say when all ranks have written theirs.
  WrittenFile write(AtomicFile& file);

 private:
  struct Entry {
    SectionInfo info;
    const std::byte* data = nullptr;
    std::uint64_t row_bytes = 0, pitch_bytes = 0, column = 0;  // column: bytes of the first row that are another piece's
    std::vector<std::byte> owned;
  };

  void add_rows(std::string_view name, SectionType type, const Extents& extents, const void* data, long pitch,
                std::size_t scalar_bytes);
  Entry& make(std::string_view name, SectionType type, std::vector<std::int64_t> extents, std::uint64_t bytes);
  /// Rows without their padding, gathered into pieces of a megabyte where there is padding. Returns the hash.
  static std::uint64_t write_values(AtomicFile& file, const Entry& entry, std::uint64_t offset);

  std::vector<std::unique_ptr<Entry>> entries_;
  FileMetadata facts_;
  std::set<std::string> names_;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "checkpoint_writer.ipp"
#endif
