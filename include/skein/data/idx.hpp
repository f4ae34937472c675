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
inline constexpr std::uint64_t idx_limit = std::uint64_t{1} << 32;

/// Reads an IDX file from a source. Throws FileError for whatever is not exactly one; allocates no more than is really there.
inline Idx read_idx(ByteSource& source, std::uint64_t limit = idx_limit) {
  unsigned char magic[4];
  source.read_all(magic, 4, "the IDX header");
  if (magic[0] != 0 || magic[1] != 0) source.fail(0, "is no IDX file: it must begin with two zero bytes");
  Idx idx;
  idx.type = static_cast<IdxType>(magic[2]);
  const int width = idx_value_bytes(idx.type), rank = magic[3];
  if (width == 0) source.fail(2, "has type code " + std::to_string(magic[2]) + ", which IDX does not know");
  if (rank < 1 || rank > 8) source.fail(3, "has " + std::to_string(rank) + " extents: 1 to 8 are understood");
  std::uint64_t bytes = static_cast<std::uint64_t>(width);
  for (int i = 0; i < rank; ++i) {
    unsigned char e[4];
    source.read_all(e, 4, "the extents of the IDX header");
    const std::uint64_t extent = std::uint64_t{e[0]} << 24 | std::uint64_t{e[1]} << 16 | std::uint64_t{e[2]} << 8 | e[3];
    if (extent > 0x7fffffffull)
      source.fail(4 + 4 * i, "extent " + std::to_string(i) + " is " + std::to_string(extent) + ": too large for IDX");
    if (extent != 0 && bytes > (std::uint64_t{1} << 62) / extent)
      source.fail(4 + 4 * i, "its extents multiply to more than any file can hold");
    bytes *= extent;
    idx.extents.push_back(static_cast<std::int64_t>(extent));
  }
  if (bytes > limit && bytes <= source.most())
    source.fail(4, "holds " + std::to_string(bytes) + " bytes, more than the limit of " + std::to_string(limit) +
                       ": give read_idx a larger one");
  idx.bytes = source.take(bytes, "the values of the IDX file");
  source.expect_end("the values of the IDX file");
  return idx;
}

/// Reads a file, plain or gzip.
inline Idx read_idx(const std::string& path, std::uint64_t limit = idx_limit) {
  ByteSource source(path);
  return read_idx(source, limit);
}

/// Reads bytes in memory; `name` stands for the path in messages.
inline Idx read_idx(std::span<const unsigned char> bytes, const std::string& name = "memory", std::uint64_t limit = idx_limit) {
  ByteSource source(bytes, name);
  return read_idx(source, limit);
}

/// A data set out of an IDX file of unsigned bytes, (n, height, width), (n, height, width, channels) or (n, length), and one of n
/// labels. Images without a channel extent get one of 1. Throws FileError where the two do not fit each other.
inline InMemory<std::uint8_t> read_idx_images(const std::string& images_path, const std::string& labels_path, int classes = 0) {
  Idx images = read_idx(images_path), labels = read_idx(labels_path);
  if (images.type != IdxType::uint8 || images.extents.size() < 2 || images.extents.size() > 4)
    throw FileError(images_path, 2, "holds no images: unsigned bytes with 2 to 4 extents are wanted");
  if (labels.type != IdxType::uint8 || labels.extents.size() != 1)
    throw FileError(labels_path, 2, "holds no labels: unsigned bytes with one extent are wanted");
  if (labels.extents[0] != images.extents[0])
    throw FileError(labels_path, 4,
                    "has " + std::to_string(labels.extents[0]) + " labels for the " + std::to_string(images.extents[0]) +
                        " images of " + images_path);
  Extents sample;
  for (std::size_t i = 1; i < images.extents.size(); ++i) {
    if (images.extents[i] == 0)
      throw FileError(images_path, static_cast<long long>(4 + 4 * i), "has an extent of zero: its images have no pixels");
    sample.e[sample.rank++] = static_cast<int>(images.extents[i]);
  }
  if (sample.rank == 2) sample.e[sample.rank++] = 1;
  std::vector<std::int32_t> numbers(labels.bytes.begin(), labels.bytes.end());
  for (std::size_t i = 0; classes > 0 && i < numbers.size(); ++i)
    if (numbers[i] >= classes)
      throw FileError(labels_path, static_cast<long long>(8 + i),
                      "label " + std::to_string(numbers[i]) + " is not below " + std::to_string(classes));
  return InMemory<std::uint8_t>(sample, std::move(images.bytes), std::move(numbers), classes);
}

}  // namespace skein::inline SKEIN_ABI::data
