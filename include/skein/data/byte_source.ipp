// SPDX-License-Identifier: Apache-2.0
// The bodies of byte_source.hpp.
#pragma once
#include "byte_source.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE ByteSource::ByteSource(const std::string& path) : path_(path), buffer_(buffer_bytes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) fail(-1, std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) fail(-1, "is no regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) fail(-1, std::string("cannot be opened: ") + std::strerror(errno));
  stored_size_ = static_cast<std::uint64_t>(facts.st_size);
  begin();
}

SKEIN_INLINE ByteSource::ByteSource(std::span<const unsigned char> bytes, std::string name)
    : path_(std::move(name)), stored_size_(bytes.size()), memory_(bytes) {
  begin();
}

SKEIN_INLINE ByteSource::~ByteSource() {
#if SKEIN_WITH_ZLIB
  if (gzip_) inflateEnd(&stream_);
#endif
}

SKEIN_INLINE std::uint64_t ByteSource::most() const {
  return gzip_ ? stored_size_ > std::numeric_limits<std::uint64_t>::max() / 1032 ? std::numeric_limits<std::uint64_t>::max()
                                                                                 : stored_size_ * 1032
               : stored_size_;
}

SKEIN_INLINE std::size_t ByteSource::read(void* to, std::size_t n) {
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

SKEIN_INLINE void ByteSource::read_all(void* to, std::size_t n, const char* what) {
  const std::int64_t from = offset_;
  const std::size_t got = read(to, n);
  if (got < n) fail(offset_, text("ends within {}: {} bytes from byte {} on are needed, {} are there", what, n, from, got));
}

SKEIN_INLINE void ByteSource::expect_end(const char* after) {
  unsigned char extra;
  const std::int64_t at = offset_;
  if (read(&extra, 1) != 0) fail(at, std::string("goes on after ") + after + ": the header and the length of the file disagree");
}

SKEIN_INLINE void ByteSource::begin() {
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

SKEIN_INLINE void ByteSource::refill() {
  if (!file_) {
    window_ = std::exchange(memory_, {});
    return;
  }
  window_ = {buffer_.data(), from_file(buffer_.data(), buffer_.size())};
}

SKEIN_INLINE std::size_t ByteSource::from_file(unsigned char* to, std::size_t n) {
  const std::size_t got = std::fread(to, 1, n, file_.get());
  if (got == 0 && std::ferror(file_.get())) fail(offset_, std::string("cannot be read: ") + std::strerror(errno));
  return got;
}

SKEIN_INLINE std::size_t ByteSource::read_plain(unsigned char* to, std::size_t n) {
  if (window_.empty()) {
    if (file_ && n >= buffer_.size()) return from_file(to, n);  // without a copy in between
    refill();
  }
  const std::size_t part = std::min(n, window_.size());
  std::copy_n(window_.data(), part, to);
  window_ = window_.subspan(part);
  return part;
}

#if SKEIN_WITH_ZLIB
SKEIN_INLINE std::size_t ByteSource::read_gzip(unsigned char* to, std::size_t n) {
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

SKEIN_INLINE void ByteSource::next_member() {
  if (window_.empty()) refill();
  if (window_.empty()) finished_ = true;
  else if (window_[0] == 0x1f) inflateReset(&stream_);
  else fail(offset_, "goes on after the end of the compressed data");
}
#endif

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
