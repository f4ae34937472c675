// SPDX-License-Identifier: Apache-2.0
// The text of a table in stretches of whole lines. For csv.ipp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byte_source.hpp"
#include "growing_array.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// Stretches of whole lines: of a text in memory, or of a file through a buffer, which holds one stretch.
class CsvText {
 public:
  /// `limit`: of a file's bytes, uncompressed; a line has at most a 16th of it, or a block.
  CsvText(std::string_view text, std::string path, char separator, std::uint64_t limit)
      : text_(text), path_(std::move(path)), separator_(separator), limit_(limit) {}
  CsvText(const std::string& path, char separator, std::uint64_t limit)
      : path_(path), file_(std::make_unique<ByteSource>(path)), separator_(separator), limit_(limit) {}

  const std::string& path() const { return path_; }
  /// Bytes of the file as it is stored.
  std::uint64_t stored() const { return file_ ? file_->stored() : text_.size(); }
  /// The next lines, in blocks of about a megabyte, at most `most`; a longer line alone; none at the end. Throws FileError for a
  /// line of more than a 16th of the limit.
  std::vector<std::string_view> next(int most);
  /// Goes back to so many bytes behind the beginning of what next() gave.
  void rewind_to(std::size_t bytes) { used_ = stretch_ + bytes; }
  /// The byte of the whole text at which next()'s lines begin.
  std::size_t place() const { return gone_ + stretch_; }

 private:
  static constexpr std::size_t block_bytes = 1 << 20, least_bytes = 1 << 16;

  /// Where the next blocks end; none where more must be read to see it.
  std::vector<std::size_t> ends_of_blocks(std::string_view ahead, int most, bool long_line) const;
  /// That many bytes which were not used; fewer only at the end.
  std::string_view ahead(std::size_t wanted);

  std::string_view text_;
  std::string path_;
  std::unique_ptr<ByteSource> file_;
  char separator_;
  std::uint64_t limit_;
  GrowingArray<char> buffer_;
  std::size_t used_ = 0, stretch_ = 0, gone_ = 0;
  bool read_all_ = false, ended_ = false;  // ended: what ahead() gave goes to the end
};

}  // namespace skein::inline SKEIN_ABI::data::detail

#if !SKEIN_COMPILED
#include "csv_text.ipp"
#endif
