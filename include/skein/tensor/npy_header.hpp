// SPDX-License-Identifier: Apache-2.0
// The header of NumPy's .npy format, versions 1 to 3 (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html):
// parsed with a reader of its own that believes nothing, and written. No length is used before it is compared with the file.
#pragma once
#include <bit>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "dims.hpp"

namespace skein::inline SKEIN_ABI {

/// What the header of a .npy file says.
struct NpyHeader {
  char kind = 'f';       ///< f, i, u or b
  int width = 4;         ///< bytes of a value
  bool swapped = false;  ///< the other byte order than this machine's
  bool fortran = false;  ///< column-major
  std::vector<long> extents;
  long long bytes = 0;  ///< of the header: the values begin here

  long long count() const;
  std::string type() const { return std::string(1, kind) + std::to_string(width); }
};

namespace detail {

/// A cursor over the text of a header: a Python dictionary of three entries, and nothing else.
class NpyText {
 public:
  NpyText(std::span<const unsigned char> text, const std::string& path, long long base) : text_(text), path_(path), base_(base) {}

  [[noreturn]] void fail(const std::string& what) const;
  bool next(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != static_cast<unsigned char>(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c);
  std::string quoted();
  bool boolean() {
    skip();
    for (const char* word : {"True", "False"}) {
      const std::string w = word;
      if (text_.size() - at_ >= w.size() && std::equal(w.begin(), w.end(), text_.begin() + static_cast<std::ptrdiff_t>(at_))) {
        at_ += w.size();
        return w == "True";
      }
    }
    fail("wants True or False here");
  }
  long number();
  void end();

 private:
  void skip();
  std::span<const unsigned char> text_;
  const std::string& path_;
  long long base_;
  std::size_t at_ = 0;
};

/// Longest header that is read: NumPy writes 128 bytes.
inline constexpr long long npy_header_limit = 1 << 20;

/// The length of the whole header out of its first 12 bytes; `available`: bytes from the start of the array on.
long long npy_header_bytes(std::span<const unsigned char> start, long long available, const std::string& path, long long base);

/// Parses a whole header; `available`: bytes from the start of the array on, header included, which must be exactly used up.
NpyHeader parse_npy_header(std::span<const unsigned char> whole, long long available, const std::string& path, long long base);

template <class S> constexpr char npy_kind() {
  return std::is_same_v<S, bool> ? 'b' : std::is_floating_point_v<S> ? 'f' : std::is_signed_v<S> ? 'i' : 'u';
}

/// The header of a dense row-major array, version 1.0, a multiple of 64 bytes.
std::string npy_header_text(char kind, int width, const long* extents, int rank);

/// Throws FileError for value i of a file, which a scalar of this kind and width cannot hold.
[[noreturn]] void throw_not_held(const std::string& path, long i, double value, char kind, int width);

}  // namespace detail

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "npy_header.ipp"
#endif
