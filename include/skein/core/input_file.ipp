// SPDX-License-Identifier: Apache-2.0
// The bodies of input_file.hpp.
#pragma once
#include "input_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE InputFile::InputFile(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // non-blocking: a pipe must not make us wait
  if (file_ < 0) throw FileError(path_, -1, "cannot be opened", errno);
  struct stat facts {};
  const int error = ::fstat(file_, &facts) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(facts.st_mode)) {
    size_ = facts.st_size;
    return;
  }
  ::close(file_);
  if (error != 0) throw FileError(path_, -1, "cannot be opened", error);
  throw FileError(path_, -1, "is not a regular file");
}

SKEIN_INLINE InputFile::InputFile(std::span<const std::byte> bytes, std::string name)
    : path_(std::move(name)), memory_(bytes.data()), size_(static_cast<long long>(bytes.size())) {}

SKEIN_INLINE InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), memory_(other.memory_), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

SKEIN_INLINE InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(memory_, other.memory_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

SKEIN_INLINE InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

SKEIN_INLINE void InputFile::read_at(long long offset, void* bytes, std::size_t count) const {
  if (offset < 0 || offset > size_ || count > static_cast<unsigned long long>(size_ - offset))
    throw FileError(path_, size_, text("{} bytes are wanted from byte {}, but the file ends here", count, offset));
  if (file_ < 0) {
    if (count > 0) std::memcpy(bytes, memory_ + offset, count);
    return;
  }
  char* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::pread(file_, next, count < (1u << 30) ? count : (1u << 30), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(path_, offset, "cannot be read", errno);
    if (n == 0) throw FileError(path_, offset, "was cut while it was read");
    next += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
