// SPDX-License-Identifier: Apache-2.0
// Bytes out of a file or out of memory, plain or gzip (told apart by the first two bytes), read once from front to back. The
// only place of the data house that includes zlib. Every fault is a FileError with the offset in the uncompressed bytes.
#pragma once
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if SKEIN_WITH_ZLIB
#include <zlib.h>
#endif

#include "../core/error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

/// A stream of bytes with a name for messages. Not copyable, not movable.
class ByteSource {
 public:
  /// Opens a file. Throws FileError where it is missing, no regular file or unreadable.
  explicit ByteSource(const std::string& path);
  /// Reads bytes in memory, which must outlive the source.
  ByteSource(std::span<const unsigned char> bytes, std::string name);
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  const std::string& path() const { return path_; }
  bool gzip() const { return gzip_; }
  /// Uncompressed bytes read so far.
  std::int64_t offset() const { return offset_; }
  /// The size of the file, as it is stored.
  std::uint64_t stored() const { return stored_size_; }
  /// The most uncompressed bytes that the stored bytes can hold in all (deflate's limit is 1032 for 1): known before reading.
  std::uint64_t most() const;

  /// Up to n bytes; fewer only at the end.
  std::size_t read(void* to, std::size_t n);
  /// Exactly n bytes, or a FileError that says what they were for.
  void read_all(void* to, std::size_t n, const char* what);
  /// Exactly n bytes in a vector that grows with what is really there: a header that lies cannot make it large.
  std::vector<unsigned char> take(std::uint64_t n, const char* what) {
    if (n > most())
      fail(offset_, text("cannot hold {}: the header asks for {} bytes, the file has {}{}", what, n, stored_size_,
                         (gzip_ ? " compressed" : "")));
    std::vector<unsigned char> bytes;
    if (n <= (std::uint64_t{1} << 30)) bytes.reserve(static_cast<std::size_t>(n));  // untouched: address space, no memory
    while (bytes.size() < n) {
      const std::size_t done = bytes.size(), next = static_cast<std::size_t>(std::min<std::uint64_t>(
                                                 n, gzip_ ? std::max<std::size_t>(2 * done, first_piece) : n));
      bytes.resize(next);
      read_all(bytes.data() + done, next - done, what);
    }
    return bytes;
  }
  /// Throws unless everything has been read.
  void expect_end(const char* after);
  [[noreturn]] void fail(std::int64_t offset, const std::string& what) const { throw FileError(path_, offset, what); }

 private:
  static constexpr std::size_t buffer_bytes = 1 << 16, first_piece = 1 << 20;

  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };

  void begin();
  /// The next stored bytes into window_; empty at the end.
  void refill();
  std::size_t from_file(unsigned char* to, std::size_t n);
  std::size_t read_plain(unsigned char* to, std::size_t n);
#if SKEIN_WITH_ZLIB
  std::size_t read_gzip(unsigned char* to, std::size_t n);
  /// A gzip file may hold several members; anything else behind one is a fault.
  void next_member();
  z_stream stream_{};
#else
  std::size_t read_gzip(unsigned char*, std::size_t) { return 0; }
#endif

  std::string path_;
  std::uint64_t stored_size_ = 0;
  std::int64_t offset_ = 0;
  bool gzip_ = false, finished_ = false;
  std::vector<unsigned char> buffer_;
  std::unique_ptr<std::FILE, Close> file_;
  std::span<const unsigned char> memory_, window_;
};

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "byte_source.ipp"
#endif
