// SPDX-License-Identifier: Apache-2.0
// Reader for IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): two zero bytes, a type, the number of extents,
// the extents as big-endian 32-bit numbers, the values in row-major order, big-endian. Plain or gzip.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "byte_source.hpp"
#include "in_memory.hpp"

namespace skein::inline SKEIN_ABI::data {

/// The type of an IDX file's values, by its code in the file.
enum class IdxType : unsigned char { uint8 = 0x08, int8 = 0x09, int16 = 0x0B, int32 = 0x0C, float32 = 0x0D, float64 = 0x0E };

/// Bytes of one value; 0 for a code that is none.
constexpr int idx_value_bytes(IdxType type) {
  switch (type) {
    case IdxType::uint8:
    case IdxType::int8:
      return 1;
    case IdxType::int16:
      return 2;
    case IdxType::int32:
    case IdxType::float32:
      return 4;
    case IdxType::float64:
      return 8;
  }
  return 0;
}

/// The contents of an IDX file: the values as they stand in it.
struct Idx {
  IdxType type = IdxType::uint8;
  std::vector<std::int64_t> extents;
  std::vector<unsigned char> bytes;  ///< big-endian, row-major

  std::int64_t count() const { return static_cast<std::int64_t>(bytes.size()) / idx_value_bytes(type); }
  /// Value i as a number.
  double operator[](std::int64_t i) const {
    const int width = idx_value_bytes(type);
    std::uint64_t raw = 0;
    for (int b = 0; b < width; ++b) raw = raw << 8 | bytes[static_cast<std::size_t>(i * width + b)];
    switch (type) {
      case IdxType::uint8:
        return static_cast<double>(raw);
      case IdxType::int8:
        return static_cast<std::int8_t>(raw);
      case IdxType::int16:
        return static_cast<std::int16_t>(raw);
      case IdxType::int32:
        return static_cast<std::int32_t>(raw);
      case IdxType::float32:
        return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
      case IdxType::float64:
        return std::bit_cast<double>(raw);
    }
    return 0;
  }
};

/// The most bytes that an IDX file may unpack to, unless the caller says otherwise: a compressed file can hold a thousand times
/// its size.
inline constexpr std::uint64_t idx_limit = std::uint64_t{1} << 30;

/// Reads an IDX file from a source. Throws FileError for whatever is not exactly one; allocates no more than is really there.
Idx read_idx(ByteSource& source, std::uint64_t limit = idx_limit);

/// Reads a file, plain or gzip.
Idx read_idx(const std::string& path, std::uint64_t limit = idx_limit);

/// Reads bytes in memory; `name` stands for the path in messages.
Idx read_idx(std::span<const unsigned char> bytes, const std::string& name = "memory", std::uint64_t limit = idx_limit);

/// A data set out of an IDX file of unsigned bytes, (n, height, width), (n, height, width, channels) or (n, length), and one of n
/// labels. Images without a channel extent get one of 1. Throws FileError where the two do not fit each other.
InMemory<std::uint8_t> read_idx_images(const std::string& images_path, const std::string& labels_path, int classes = 0,
                                       std::uint64_t limit = idx_limit);

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "idx.ipp"
#endif
