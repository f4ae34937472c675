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

namespace skein::inline SKEIN_ABI::data {

/// A stream of bytes with a name for messages. Not copyable, not movable.
class ByteSource {
 public:
  /// Opens a file. Throws FileError where it is missing, no regular file or unreadable.
  explicit ByteSource(const std::string& path) : path_(path), buffer_(buffer_bytes) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) fail(-1, std::string("cannot be opened: ") + std::strerror(errno));
    if (!S_ISREG(facts.st_mode)) fail(-1, "is no regular file");
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) fail(-1, std::string("cannot be opened: ") + std::strerror(errno));
    stored_size_ = static_cast<std::uint64_t>(facts.st_size);
    begin();
  }
  /// Reads bytes in memory, which must outlive the source.
  ByteSource(std::span<const unsigned char> bytes, std::string name)
      : path_(std::move(name)), stored_size_(bytes.size()), memory_(bytes) {
    begin();
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource() {
#if SKEIN_WITH_ZLIB
    if (gzip_) inflateEnd(&stream_);
#endif
  }

  const std::string& path() const { return path_; }
  bool gzip() const { return gzip_; }
  /// Uncompressed bytes read so far.
  std::int64_t offset() const { return offset_; }
  /// The most uncompressed bytes that the stored bytes can hold in all (deflate's limit is 1032 for 1): known before reading.
  std::uint64_t most() const {
    return gzip_ ? stored_size_ > std::numeric_limits<std::uint64_t>::max() / 1032 ? std::numeric_limits<std::uint64_t>::max()
                                                                                   : stored_size_ * 1032
                 : stored_size_;
  }

  /// Up to n bytes; fewer only at the end.
  std::size_t read(void* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const std::size_t got = gzip_ ? read_gzip(static_cast<unsigned char*>(to) + done, n - done)
                                    : read_plain(static_cast<unsigned char*>(to) + done, n - done);
      if (got == 0) break;
      done += got;
      offset_ += static_cast<std::int64_t>(got);
    }
    return done;
  }
  /// Exactly n bytes, or a FileError that says what they were for.
  void read_all(void* to, std::size_t n, const char* what) {
    const std::int64_t from = offset_;
    const std::size_t got = read(to, n);
    if (got < n)
      fail(offset_, std::string("ends within ") + what + ": " + std::to_string(n) + " bytes from byte " + std::to_string(from) +
                        " on are needed, " + std::to_string(got) + " are there");
  }
  /// Exactly n bytes in a vector that grows with what is really there: a header that lies cannot make it large.
  std::vector<unsigned char> take(std::uint64_t n, const char* what) {
    if (n > most())
      fail(offset_, std::string("cannot hold ") + what + ": the header asks for " + std::to_string(n) + " bytes, the file has " +
                        std::to_string(stored_size_) + (gzip_ ? " compressed" : ""));
    std::vector<unsigned char> bytes;
    while (bytes.size() < n) {
      const std::size_t done = bytes.size(), next = static_cast<std::size_t>(std::min<std::uint64_t>(
                                                 n, gzip_ ? std::max<std::size_t>(2 * done, first_piece) : n));
      bytes.resize(next);
      read_all(bytes.data() + done, next - done, what);
    }
    return bytes;
  }
  /// Everything that is left, at most `limit` bytes.
  std::vector<unsigned char> rest(std::uint64_t limit) {
    std::vector<unsigned char> bytes;
    while (true) {
      const std::size_t done = bytes.size(), piece = std::max<std::size_t>(done, 1 << 16);
      bytes.resize(done + piece);
      const std::size_t got = read(bytes.data() + done, piece);
      bytes.resize(done + got);
      if (bytes.size() > limit) fail(offset_, "is larger than the limit of " + std::to_string(limit) + " bytes");
      if (got < piece) return bytes;
    }
  }
  /// Throws unless everything has been read.
  void expect_end(const char* after) {
    unsigned char extra;
    const std::int64_t at = offset_;
    if (read(&extra, 1) != 0)
      fail(at, std::string("goes on after ") + after + ": the header and the length of the file disagree");
  }
  [[noreturn]] void fail(std::int64_t offset, const std::string& what) const { throw FileError(path_, offset, what); }

 private:
  static constexpr std::size_t buffer_bytes = 1 << 16, first_piece = 1 << 20;

  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };

  void begin() {
    refill();
    if (window_.size() < 2 || window_[0] != 0x1f || window_[1] != 0x8b) return;
#if SKEIN_WITH_ZLIB
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail(0, "zlib could not start: out of memory");
    gzip_ = true;
#else
    fail(0,
         "is compressed with gzip, and this program is built without zlib: run gunzip on it, or install zlib1g-dev and build "
         "again");
#endif
  }
  /// The next stored bytes into window_; empty at the end.
  void refill() {
    if (!file_) {
      window_ = std::exchange(memory_, {});
      return;
    }
    const std::size_t got = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (got == 0 && std::ferror(file_.get())) fail(offset_, std::string("cannot be read: ") + std::strerror(errno));
    window_ = {buffer_.data(), got};
  }
  std::size_t read_plain(unsigned char* to, std::size_t n) {
    if (window_.empty()) refill();
    const std::size_t part = std::min(n, window_.size());
    std::copy_n(window_.data(), part, to);
    window_ = window_.subspan(part);
    return part;
  }
#if SKEIN_WITH_ZLIB
  std::size_t read_gzip(unsigned char* to, std::size_t n) {
    const uInt want = static_cast<uInt>(std::min<std::size_t>(n, 1u << 30));
    stream_.next_out = to;
    stream_.avail_out = want;
    while (stream_.avail_out == want && !finished_) {
      if (window_.empty()) refill();
      if (window_.empty()) fail(offset_, "the compressed data end too early: the file is truncated");
      const uInt part = static_cast<uInt>(std::min<std::size_t>(window_.size(), 1u << 30));
      stream_.next_in = const_cast<unsigned char*>(window_.data());
      stream_.avail_in = part;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      window_ = window_.subspan(part - stream_.avail_in);
      if (status == Z_STREAM_END) next_member();
      else if (status != Z_OK && status != Z_BUF_ERROR)
        fail(offset_ + static_cast<std::int64_t>(want - stream_.avail_out),
             std::string("the compressed data are damaged: ") + (stream_.msg ? stream_.msg : "zlib gives no reason"));
    }
    return want - stream_.avail_out;
  }
  /// A gzip file may hold several members; anything else behind one is a fault.
  void next_member() {
    if (window_.empty()) refill();
    if (window_.empty()) finished_ = true;
    else if (window_[0] == 0x1f) inflateReset(&stream_);
    else fail(offset_, "goes on after the end of the compressed data");
  }
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
