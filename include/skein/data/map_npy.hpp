// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy's .npy files without reading them: the file is mapped into memory, and pages come as they are looked at. And
// texts of tokens as a data set: windows of T tokens, with the token after each as its label.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../tensor/npy_header.hpp"
#include "dataset.hpp"

namespace skein::inline SKEIN_ABI::data {

/// A file that is mapped to be read, until the last copy is gone.
struct MappedFile {
  std::shared_ptr<const unsigned char> bytes;
  std::size_t size = 0;
  std::uint64_t device = 0, inode = 0;  ///< no other file has them while this one is mapped

  MappedFile() = default;
  MappedFile(std::shared_ptr<const unsigned char> mapped, std::size_t count, std::uint64_t its_device, std::uint64_t its_inode)
      : bytes(std::move(mapped)), size(count), device(its_device), inode(its_inode) {}
  /// Shares the file. There is no other move: what was moved from keeps it.
  MappedFile(const MappedFile&) = default;
  MappedFile& operator=(const MappedFile&) = default;
  /// Whether the path still leads to it, and not to a file that has taken its place.
  bool is_at(const std::string& path) const;
};
/// Maps a plain file. Throws FileError where there is none, or nothing in it.
MappedFile map_file(const std::string& path);

namespace detail {
/// Maps a .npy file and parses its header. Throws FileError where it is not whole, not of this type in this machine's byte order,
/// or column-major.
MappedFile map_npy_file(const std::string& path, char kind, int width, NpyHeader& header);
}  // namespace detail

/// The values of a .npy file, row by row, in memory that is mapped. Copies share it.
template <class Scalar> struct MappedNpy {
  std::vector<long> extents;
  std::span<const Scalar> values;
  MappedFile file;  ///< keeps the values there

  MappedNpy() = default;
  /// Shares the file. There is no other move: what was moved from is as it was.
  MappedNpy(const MappedNpy&) = default;
  MappedNpy& operator=(const MappedNpy&) = default;
};

/// Maps an array of exactly this type. The file is not believed: its length, type and order are looked at first. It must not be
/// made shorter while it is mapped.
template <class Scalar> MappedNpy<Scalar> map_npy(const std::string& path) {
  static_assert(std::is_arithmetic_v<Scalar> && !std::is_same_v<Scalar, bool>, "data::map_npy<Scalar> maps arrays of numbers");
  NpyHeader header;
  MappedNpy<Scalar> result;
  result.file = detail::map_npy_file(path, skein::detail::npy_kind<Scalar>(), static_cast<int>(sizeof(Scalar)), header);
  result.values = {reinterpret_cast<const Scalar*>(result.file.bytes.get() + header.bytes),
                   static_cast<std::size_t>(header.count())};
  result.extents = std::move(header.extents);
  return result;
}

/// How a text becomes samples: sample i is the `length` tokens from i * stride on.
struct NextTokenOptions {
  int length = 0;      ///< tokens a sample, and so labels
  long stride = 0;     ///< from one sample to the next; 0: the length
  int vocabulary = 0;  ///< different tokens that there may be, from 0 on: classes of the labels; 0: not known
};

/// Samples of T tokens out of a text, each with T labels: the token that follows. Read when they are asked for; nothing is copied
/// before. Token is an integer of at most 32 bits.
template <class Token = std::int32_t> class NextTokens {
  static_assert(std::is_integral_v<Token> && !std::is_same_v<Token, bool> &&
                    (sizeof(Token) < 4 || std::is_same_v<Token, std::int32_t>),
                "data::NextTokens takes a text of integers that fit 32 bits: std::int32_t, std::uint16_t or std::uint8_t");

 public:
  /// The text of a file, whose extents do not matter. Throws ArgumentError where it is too short for one sample.
  NextTokens(const MappedNpy<Token>& text, const NextTokenOptions& options) : NextTokens(text.values, options) {
    file_ = text.file;
  }
  /// A text in memory that outlives this.
  NextTokens(std::span<const Token> text, const NextTokenOptions& options) : text_(text), options_(options) {
    if (options.length < 1 || options.stride < 0 || options.vocabulary < 0)
      throw ArgumentError("NextTokens: .length is at least 1 token, and .stride and .vocabulary are not negative");
    if (options_.stride == 0) options_.stride = options.length;
    const auto last = static_cast<std::int64_t>(text.size()) - options.length - 1;
    if (last < 0)
      throw ArgumentError(skein::text("NextTokens: a sample of {} tokens and the one after it needs a longer text than {} tokens",
                                      options.length, text.size()));
    size_ = last / options_.stride + 1;
  }

  /// Shares the file. There is no other move: what was moved from keeps its text.
  NextTokens(const NextTokens&) = default;
  NextTokens& operator=(const NextTokens&) = default;

  std::int64_t size() const { return size_; }
  Extents sample_extents() const { return {1, {options_.length}, true}; }
  Target target() const { return Target::labels(options_.vocabulary, options_.length); }
  void gather(Indices indices, std::int32_t* x, long pitch) const {
    for (const std::int64_t i : indices) {
      copy(i, 0, x);
      x += pitch;
    }
  }
  void labels(Indices indices, std::int32_t* out) const {
    for (const std::int64_t i : indices) {
      copy(i, 1, out);
      out += options_.length;
    }
  }

 private:
  void copy(std::int64_t sample, std::int64_t ahead, std::int32_t* to) const {
    const Token* from = text_.data() + sample * options_.stride + ahead;
    for (int t = 0; t < options_.length; ++t) to[t] = static_cast<std::int32_t>(from[t]);
  }

  std::span<const Token> text_;
  NextTokenOptions options_;
  MappedFile file_{};
  std::int64_t size_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "map_npy.ipp"
#endif
