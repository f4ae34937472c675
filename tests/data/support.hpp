// SPDX-License-Identifier: Apache-2.0
// Helpers of the data tests: files in a folder of their own, bytes of IDX files, gzip, the text of a failure.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <skein/core/error.hpp>
#include <skein/data/byte_source.hpp>

#include "../support/temporary_folder.hpp"

namespace data_test {

using Bytes = std::vector<unsigned char>;

/// A temporary folder into which bytes and texts are written.
class Folder : public support::TemporaryFolder {
 public:
  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file.string();
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, Bytes(text.begin(), text.end()));
  }
};

inline Bytes idx_bytes(unsigned char type, std::initializer_list<std::uint32_t> extents, const Bytes& values) {
  Bytes b{0, 0, type, static_cast<unsigned char>(extents.size())};
  for (const std::uint32_t e : extents)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(static_cast<unsigned char>(e >> shift));
  b.insert(b.end(), values.begin(), values.end());
  return b;
}

#if SKEIN_WITH_ZLIB
inline Bytes gzipped(const Bytes& plain) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(plain.size() + 1024);
  z.next_in = const_cast<unsigned char*>(plain.data());
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
#endif

/// What a call throws, as text; "nothing" if it does not. Offset and path as in the exception.
struct Thrown {
  std::string text = "nothing", path;
  long long offset = -2;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};
template <class Function> Thrown thrown(Function f) {
  try {
    f();
  } catch (const skein::FileError& e) { return {e.what(), e.path(), e.offset()}; } catch (const skein::Error& e) {
    return {e.what(), "", -2};
  }
  return {};
}

}  // namespace data_test
