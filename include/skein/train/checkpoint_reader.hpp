// SPDX-License-Identifier: Apache-2.0
// Reads a checkpoint, of a file or of the folder of a commit. Files are hostile until checked: the constructor compares every
// length with the size of the file before it allocates, recomputes the layout, and verifies every hash, so that nothing of a
// damaged file reaches a model. Every fault is a FileError with path and byte; a later format is a VersionError.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/input_file.hpp"
#include "../core/shape.hpp"
#include "archive.hpp"
#include "checkpoint_writer.hpp"
#include "hash.hpp"
#include "pieces.hpp"
#include "checkpoint_format.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Whether opening reads the whole file to check its hashes, or its table only (a section is then checked when it is read).
enum class Verify { Whole, Table };

/// CheckpointReader r{path};  r.read("parameters/0.weight", extents, data, pitch);  r.read_object("loader", loader);  r.finish();
class CheckpointReader {
 public:
  /// The path of a file, or of the folder of a commit, whose shards are read as one file: one is open at a time, so that many
  /// ranks of a process can read a commit of many shards.
  explicit CheckpointReader(const std::string& path, Verify verify = Verify::Whole);
  explicit CheckpointReader(InputFile file, Verify verify = Verify::Whole);

  const std::string& path() const { return path_; }
  const std::vector<SectionInfo>& sections() const { return table_.sections; }
  /// The build that wrote the file: version, instruction set, compiler.
  const std::string& written_by() const { return table_.written_by; }
  /// What else is said in the header of a file.
  const FileMetadata& facts() const { return table_.facts; }
  /// The hash that is in the header, and covers all of the file; of a folder, that of its manifest; 0 in format 1.
  std::uint64_t header_hash() const { return header_hash_; }
  /// A hash of all that the file holds: the same for copies of a file.
  std::uint64_t hash() const;
  bool contains(std::string_view name) const { return by_name_.contains(name); }
  /// Throws FileError where the file has no such section.
  const SectionInfo& section(std::string_view name) const { return table_.sections[find(name)]; }

  /// Fills a tensor in host memory whose rows are `pitch` scalars apart; gaps stay as they are. Type and extents must be those of
  /// the section. Throws FileError.
  template <class T> void read(std::string_view name, const Extents& extents, T* data, long pitch) {
    read_values(name, section_type<T>(), extents, data, pitch);
  }
  void read_values(std::string_view name, SectionType type, const Extents& extents, void* data, long pitch);
  /// Fills a flat run of values in host memory.
  template <class T> void read(std::string_view name, std::span<T> values) {
    const std::size_t at = expect(name, section_type<T>(), {static_cast<std::int64_t>(values.size())});
    read_section(at, reinterpret_cast<std::byte*>(values.data()), values.size_bytes(), values.size_bytes());
  }
  /// Reads an object by its serialize(); it must take all bytes of the section.
  template <class T> void read_object(std::string_view name, T& object) {
    const std::size_t at = find(name);
    skein::detail::reading(path(), [&] {
      from_bytes(byte_span(read_object_bytes(name)), object, path_of(pieces_[at].front().file),
                 static_cast<long long>(table_.sections[at].offset));
    });
    taken_[at] = true;
  }
  /// Its bytes, for whoever knows what they are, and says take(name) when that is sound.
  std::vector<std::byte> read_object_bytes(std::string_view name);
  void take(std::string_view name) { taken_[find(name)] = true; }

  /// Says which sections nobody read: the file is of another network, or has more than this program knows. Throws FileError.
  void finish() const;

  /// Checks every section and every gap. Throws FileError at the first that is damaged.
  void verify() const;

 private:
  void open_folder();
  const std::string& path_of(std::size_t file) const { return shards_.empty() ? path_ : shards_[file]; }
  /// A fault of a section; of a byte of the (first) file.
  [[noreturn]] void fail(std::size_t section, const std::string& what) const;
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& what) const;

  void read_header();
  void read_format_1();
  /// There is one right place for each section.
  void check_layout(std::uint64_t begin, std::uint64_t alignment);
  /// ~0 where the product does not fit.
  static std::uint64_t bytes_of(const SectionInfo& info);

  std::size_t find(std::string_view name) const;
  /// The number of the section.
  std::size_t expect(std::string_view name, SectionType type, std::vector<std::int64_t> extents);

  /// Through a piece of a megabyte where rows are padded or nobody wants the values.
  void read_section(std::size_t section, std::byte* to, std::uint64_t row_bytes, std::uint64_t pitch_bytes) const;
  static void scatter(const std::byte* from, std::uint64_t first, std::uint64_t count, std::byte* to, std::uint64_t row_bytes,
                      std::uint64_t pitch_bytes);
  void check_zeros(std::uint64_t from) const;

  static constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;
  std::string path_;
  std::optional<InputFile> file_;    // none of a folder
  std::vector<std::string> shards_;  // paths, of a folder
  FileTable table_;
  std::vector<std::vector<SectionPiece>> pieces_;  // of each section
  std::uint64_t header_hash_ = 0;
  std::uint64_t table_bytes_ = 0;  // of format 1, which has gaps
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<char> taken_;  // not of bool, whose iterators each program would compile
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "checkpoint_reader.ipp"
#endif
