// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_reader.hpp.
#pragma once
#include <cerrno>
#include <sys/stat.h>

#include "../core/hash.hpp"
#include "../core/text.hpp"
#include "checkpoint_reader.hpp"
#include "manifest.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::uint64_t CheckpointReader::hash() const {
  Fnv1a all;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    all.add(table_.sections[i].name);
    for (const SectionPiece& p : pieces_[i]) all.add(p.hash);
  }
  return all.value();
}

SKEIN_INLINE CheckpointReader::CheckpointReader(const std::string& path, Verify verify) : path_(path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) throw FileError(path, -1, "cannot be opened", errno);
  if (S_ISDIR(facts.st_mode)) {
    open_folder();
  } else {
    file_.emplace(path);
    read_header();
  }
  if (verify == Verify::Whole) this->verify();
}

SKEIN_INLINE CheckpointReader::CheckpointReader(InputFile file, Verify verify) : path_(file.path()) {
  file_.emplace(std::move(file));
  read_header();
  if (verify == Verify::Whole) this->verify();
}

SKEIN_INLINE void CheckpointReader::open_folder() {
  struct stat facts {};
  if (::stat((path_ + "/" + manifest_name).c_str(), &facts) != 0 && errno == ENOENT)
    throw FileError(path_, -1,
                    "is a folder without a checkpoint (" + std::string(manifest_name) +
                        "): those that .checkpoint made are folders in it, step_...: name one of them");
  const CheckpointReader manifest(InputFile(path_ + "/" + manifest_name), Verify::Whole);
  header_hash_ = manifest.header_hash_;
  std::vector<WrittenFile> shards;
  for (int r = 0; r < ranks_of_manifest(manifest.facts(), manifest.path()); ++r) {
    shards_.push_back(path_ + "/" + shard_name(r));
    CheckpointReader shard(InputFile(shards_.back()), Verify::Table);
    shards.push_back({std::move(shard.table_), static_cast<std::uint64_t>(shard.file_->size()), shard.header_hash_});
  }
  std::vector<GatheredSection> sections = sections_of(shards, path_);
  check_manifest(manifest.facts(), shards, sections, path_);
  table_.written_by = manifest.written_by();
  table_.facts = manifest.facts();
  for (GatheredSection& s : sections) {
    by_name_.emplace(s.info.name, pieces_.size());
    table_.sections.push_back(std::move(s.info));
    pieces_.push_back(std::move(s.pieces));
  }
  taken_.assign(pieces_.size(), false);
}

SKEIN_INLINE void CheckpointReader::finish() const {
  std::string names;
  int count = 0;
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i] && ++count <= 5) names += (names.empty() ? "'" : ", '") + table_.sections[i].name + "'";
  if (count > 0)
    throw FileError(
        path(), -1,
        skein::text("{} section(s) of the file have no place here: {}{}; the file was saved from another model or optimizer",
                    count, names, (count > 5 ? ", ..." : "")));
}

SKEIN_INLINE void CheckpointReader::verify() const {
  if (table_bytes_ > 0) check_zeros(detail::header_bytes + table_bytes_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const SectionInfo& info = table_.sections[i];
    read_section(i, nullptr, info.bytes, info.bytes);
    if (table_bytes_ > 0) check_zeros(info.offset + info.bytes);
  }
}

SKEIN_INLINE void CheckpointReader::fail(std::size_t section, const std::string& what) const {
  const SectionPiece& first = pieces_[section].front();
  throw FileError(path_of(first.file), static_cast<long long>(first.offset), what);
}
SKEIN_INLINE void CheckpointReader::fail_at(std::uint64_t offset, const std::string& what) const {
  throw FileError(path_, static_cast<long long>(offset), what);
}

/// The first bytes, as many as the file has.
inline std::string begin_of(const InputFile& file, std::size_t most) {
  const auto size = static_cast<std::size_t>(file.size());
  std::string bytes(size < most ? size : most, '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

SKEIN_INLINE void CheckpointReader::read_header() {
  const InputFile& file = *file_;
  const auto size = static_cast<std::uint64_t>(file.size());
  const std::string_view known = detail::safetensors_begin;
  if (size == 0) fail_at(0, "is empty");
  const std::string begin = begin_of(file, 8 + known.size() + 12);
  if (begin.starts_with(std::string_view(detail::checkpoint_magic, 8))) return read_format_1();
  const std::string_view words = std::string_view(begin).substr(begin.size() < 8 ? begin.size() : 8);
  std::uint64_t length = 0, version = 0;
  if (begin.size() >= 8) std::memcpy(&length, begin.data(), 8);
  const bool short_one = words.size() < known.size() && length > detail::longest_header;  // which a piece of a checkpoint is not
  if (begin.size() < 8 || words.substr(0, known.size()) != known.substr(0, words.size()) || short_one)
    fail_at(0, words.starts_with('{') ? "is a safetensors file that skein did not write: it has no hashes to check"
                                      : "is no skein checkpoint: another file begins like this");
  for (std::size_t i = known.size(); i < words.size() && words[i] >= '0' && words[i] <= '9'; ++i)
    version = 10 * version + static_cast<std::uint64_t>(words[i] - '0');
  if (version > checkpoint_version && words.find('"', known.size()) != words.npos)
    throw VersionError(
        path(), static_cast<long long>(8 + known.size()),
        text("has checkpoint format {}, but this program knows up to {}: take a later skein", version, checkpoint_version));
  if (length > detail::longest_header) fail_at(0, "the header is said to be longer than any is: it is damaged");
  if (length > size - 8) fail_at(size, "was cut: it ends within its header");
  const std::string header = begin_of(file, 8 + length);
  header_hash_ = detail::hash_of_header(header);
  if (!detail::hash_fits(header)) fail_at(0, "the header is damaged: its hash does not fit");
  table_ = detail::read_safetensors_header(header, path());
  check_layout(header.size(), 1);
}

SKEIN_INLINE void CheckpointReader::read_format_1() {
  const InputFile& file = *file_;
  const auto size = static_cast<std::uint64_t>(file.size());
  detail::CheckpointHeader header;
  if (size < sizeof header) fail_at(size, "was cut: it ends within its header");
  file.read_at(0, &header, sizeof header);
  if (header.version > 1)
    throw VersionError(path(), 8, skein::text("has a header of format 1 that says format {}", header.version));
  if (header.hash != hash64(&header, sizeof header - 8)) fail_at(0, "the header is damaged: its hash does not fit");
  if (header.version == 0 || header.zero != 0 || header.more_zero != 0)
    fail_at(8, "the header holds fields that format 1 does not have");
  if (header.file_bytes != size)
    fail_at(size, skein::text("has {} bytes, but {} were written: it was {}", size, header.file_bytes,
                              (size < header.file_bytes ? "cut" : "appended to")));
  if (header.table_bytes > size - sizeof header) fail_at(24, "the table is said to be longer than the file");
  std::vector<std::byte> bytes(header.table_bytes);
  file.read_at(sizeof header, bytes.data(), bytes.size());
  if (header.table_hash != hash64(bytes.data(), bytes.size()))
    fail_at(sizeof header, "the table is damaged: its hash does not fit");
  from_bytes(byte_span(bytes), table_, path(), sizeof header);
  if (header.sections != table_.sections.size())
    fail_at(16, skein::text("the header counts {} sections, the table {}", header.sections, table_.sections.size()));
  table_bytes_ = header.table_bytes;
  check_layout(detail::aligned(detail::header_bytes + table_bytes_), detail::section_alignment);
}

SKEIN_INLINE void CheckpointReader::check_layout(std::uint64_t begin, std::uint64_t alignment) {
  const auto size = static_cast<std::uint64_t>(file_->size());
  std::uint64_t offset = begin;
  taken_.assign(table_.sections.size(), false);
  for (std::size_t i = 0; i < table_.sections.size(); ++i) {
    const SectionInfo& info = table_.sections[i];
    if (info.name.empty() || info.name.size() > detail::longest_section_name || !is_plain_text(info.name) ||
        !by_name_.emplace(info.name, i).second)
      fail_at(detail::header_bytes, text("section {} of the table has no name, one that is no name, or another's", i));
    if (value_bytes(info.type) == 0) fail_at(detail::header_bytes, "section '" + info.name + "' holds values of an unknown type");
    if (info.extents.size() > detail::most_extents || bytes_of(info) != info.bytes)
      fail_at(detail::header_bytes,
              skein::text("section '{}' is said to hold {} in {} bytes", info.name, info.text(), info.bytes));
    if (info.offset != offset || __builtin_add_overflow(offset, info.bytes, &offset) || offset > ~std::uint64_t{0} - alignment)
      fail_at(detail::header_bytes,
              skein::text("section '{}' is not where it must be: {} bytes at byte {}", info.name, info.bytes, info.offset));
    offset = (offset + alignment - 1) / alignment * alignment;
    pieces_.push_back({{0, info.offset, info.bytes, info.hash}});
  }
  if (offset != size)
    fail_at(size, skein::text("has {} bytes, but its sections end at byte {}: it was {}", size, offset,
                              (size < offset ? "cut" : "appended to")));
}

SKEIN_INLINE std::uint64_t CheckpointReader::bytes_of(const SectionInfo& info) {
  std::uint64_t bytes = static_cast<std::uint64_t>(value_bytes(info.type));
  for (const std::int64_t extent : info.extents)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return ~std::uint64_t{0};
  return bytes;
}

SKEIN_INLINE std::size_t CheckpointReader::find(std::string_view name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  TextList near;
  for (const SectionInfo& info : table_.sections)
    if (near.text().size() < 200) near.add(info.name);
  throw FileError(
      path(), -1,
      text("has no section '{}'; it has: {}{}", name, near.or_words("none"), near.text().size() < 200 ? "" : ", ..."));
}

SKEIN_INLINE std::size_t CheckpointReader::expect(std::string_view name, SectionType type, std::vector<std::int64_t> extents) {
  const std::size_t at = find(name);
  const SectionInfo& info = table_.sections[at];
  if (info.type != type || info.extents != extents) {
    SectionInfo wanted;
    wanted.type = type;
    wanted.extents = std::move(extents);
    fail(at, "section '" + info.name + "' holds " + info.text() + ", but here it must be " + wanted.text() +
                 ": the file was saved from another network or scalar type");
  }
  taken_[at] = true;
  return at;
}

SKEIN_INLINE void CheckpointReader::read_values(std::string_view name, SectionType type, const Extents& extents, void* data,
                                                long pitch) {
  if (pitch < extents.last())
    throw ArgumentError(
        skein::text("checkpoint section '{}': rows of {} values cannot be {} apart", name, extents.last(), pitch));
  const std::size_t at = expect(name, type, {extents.e, extents.e + extents.rank});
  const auto width = static_cast<std::uint64_t>(value_bytes(type));
  read_section(at, static_cast<std::byte*>(data), static_cast<std::uint64_t>(extents.last()) * width,
               static_cast<std::uint64_t>(pitch) * width);
}

SKEIN_INLINE std::vector<std::byte> CheckpointReader::read_object_bytes(std::string_view name) {
  const std::size_t at = find(name);
  const SectionInfo& info = table_.sections[at];
  if (info.type != SectionType::object) fail(at, "section '" + info.name + "' holds " + info.text() + ", not an object");
  std::vector<std::byte> bytes;
  skein::detail::reading(path(), [&] {
    bytes.resize(info.bytes);
    read_section(at, bytes.data(), info.bytes, info.bytes);
  });
  return bytes;
}

SKEIN_INLINE void CheckpointReader::read_section(std::size_t section, std::byte* to, std::uint64_t row_bytes,
                                                 std::uint64_t pitch_bytes) const {
  const SectionInfo& info = table_.sections[section];
  std::vector<std::byte> block;
  std::uint64_t first = 0;  // of the piece, in the section
  for (const SectionPiece& piece : pieces_[section]) {
    std::optional<InputFile> shard;
    const InputFile& file = shards_.empty() ? *file_ : shard.emplace(shards_[piece.file]);
    Hash64 hash;
    if (to && (row_bytes == pitch_bytes || info.bytes == 0)) {
      file.read_at(static_cast<long long>(piece.offset), to + first, piece.bytes);
      hash.update(to + first, piece.bytes);
    } else {
      block.resize(piece.bytes < block_bytes ? piece.bytes : block_bytes);
      for (std::uint64_t done = 0; done < piece.bytes;) {
        const std::uint64_t count = piece.bytes - done < block.size() ? piece.bytes - done : block.size();
        file.read_at(static_cast<long long>(piece.offset + done), block.data(), count);
        hash.update(block.data(), count);
        if (to) scatter(block.data(), first + done, count, to, row_bytes, pitch_bytes);
        done += count;
      }
    }
    if (hash.value() != piece.hash)
      throw FileError(file.path(), static_cast<long long>(piece.offset),
                      "section '" + info.name + "' is damaged: its hash does not fit");
    first += piece.bytes;
  }
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
  file_->read_at(static_cast<long long>(from), gap, count);
  for (std::uint64_t i = 0; i < count; ++i)
    if (gap[i] != 0) fail_at(from + i, "the gap between two sections is damaged: it must be zero");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
