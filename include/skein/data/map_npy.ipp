// SPDX-License-Identifier: Apache-2.0
// The bodies of map_npy.hpp.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "map_npy.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE MappedFile map_file(const std::string& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  } const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) throw FileError(path, -1, "cannot be opened", errno);
  struct stat about {};
  if (::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode))
    throw FileError(path, -1, "is no plain file: it cannot be mapped");
  if (about.st_size == 0) throw FileError(path, 0, "is empty");
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (at == MAP_FAILED) throw FileError(path, -1, "cannot be mapped", errno);
  return {std::shared_ptr<const unsigned char>(static_cast<const unsigned char*>(at),
                                               [size](const unsigned char* p) { ::munmap(const_cast<unsigned char*>(p), size); }),
          size, static_cast<std::uint64_t>(about.st_dev), static_cast<std::uint64_t>(about.st_ino)};
}

SKEIN_INLINE bool MappedFile::is_at(const std::string& path) const {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && static_cast<std::uint64_t>(about.st_dev) == device &&
         static_cast<std::uint64_t>(about.st_ino) == inode;
}

namespace detail {
SKEIN_INLINE MappedFile map_npy_file(const std::string& path, char kind, int width, NpyHeader& header) {
  MappedFile file = map_file(path);
  header = skein::detail::parse_npy_header({file.bytes.get(), file.size}, static_cast<long long>(file.size), path, 0);
  const std::string wanted = std::string(1, kind) + std::to_string(width);
  if (header.kind != kind || header.width != width)
    throw FileError(path, 0,
                    "holds values of type " + header.type() + ", " + wanted +
                        " is mapped: map its type, or write it again with .astype(\"" + wanted + "\")");
  if (header.swapped && width > 1)
    throw FileError(path, 0, "holds values in the other byte order: write it again with .astype(\"=" + wanted + "\")");
  if (header.fortran && header.extents.size() > 1)
    throw FileError(path, 0, "is column-major: write it again with numpy.ascontiguousarray");
  if (header.bytes % width != 0)
    throw FileError(path, 0,
                    text("has a header of {} bytes, behind which values of {} are not aligned: write it again with numpy.save",
                         header.bytes, wanted));
  return file;
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data
