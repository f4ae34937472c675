// SPDX-License-Identifier: Apache-2.0
// The bodies of idx.hpp.
#pragma once
#include "idx.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Idx read_idx(ByteSource& source, std::uint64_t limit) {
  unsigned char magic[4];
  source.read_all(magic, 4, "the IDX header");
  if (magic[0] != 0 || magic[1] != 0) source.fail(0, "is no IDX file: it must begin with two zero bytes");
  Idx idx;
  idx.type = static_cast<IdxType>(magic[2]);
  const int width = idx_value_bytes(idx.type), rank = magic[3];
  if (width == 0) source.fail(2, text("has type code {}, which IDX does not know", magic[2]));
  if (rank < 1 || rank > 8) source.fail(3, text("has {} extents: 1 to 8 are understood", rank));
  std::uint64_t bytes = static_cast<std::uint64_t>(width);
  std::uint64_t claimed = bytes;  // without extents of zero
  for (int i = 0; i < rank; ++i) {
    unsigned char e[4];
    source.read_all(e, 4, "the extents of the IDX header");
    const std::uint64_t extent = std::uint64_t{e[0]} << 24 | std::uint64_t{e[1]} << 16 | std::uint64_t{e[2]} << 8 | e[3];
    if (extent > 0x7fffffffull) source.fail(4 + 4 * i, text("extent {} is {}: too large for IDX", i, extent));
    if (extent != 0 && claimed > (std::uint64_t{1} << 62) / extent)
      source.fail(4 + 4 * i, "its extents multiply to more than any file can hold");
    claimed *= std::max<std::uint64_t>(extent, 1);
    bytes *= extent;
    idx.extents.push_back(static_cast<std::int64_t>(extent));
  }
  if (bytes > limit && bytes <= source.most())
    source.fail(4, text("holds {} bytes, more than the limit of {}: give read_idx a larger one", bytes, limit));
  idx.bytes = source.take(bytes, "the values of the IDX file");
  source.expect_end("the values of the IDX file");
  return idx;
}

SKEIN_INLINE Idx read_idx(const std::string& path, std::uint64_t limit) {
  return skein::detail::reading(path, [&] {
    ByteSource source(path);
    return read_idx(source, limit);
  });
}

SKEIN_INLINE Idx read_idx(std::span<const unsigned char> bytes, const std::string& name, std::uint64_t limit) {
  return skein::detail::reading(name, [&] {
    ByteSource source(bytes, name);
    return read_idx(source, limit);
  });
}

SKEIN_INLINE InMemory<std::uint8_t> read_idx_images(const std::string& images_path, const std::string& labels_path, int classes,
                                                    std::uint64_t limit) {
  Idx images = read_idx(images_path, limit), labels = read_idx(labels_path, limit / sizeof(std::int32_t));
  if (images.type != IdxType::uint8 || images.extents.size() < 2 || images.extents.size() > 4)
    throw FileError(images_path, 2, "holds no images: unsigned bytes with 2 to 4 extents are wanted");
  if (labels.type != IdxType::uint8 || labels.extents.size() != 1)
    throw FileError(labels_path, 2, "holds no labels: unsigned bytes with one extent are wanted");
  if (labels.extents[0] != images.extents[0])
    throw FileError(labels_path, 4,
                    text("has {} labels for the {} images of {}", labels.extents[0], images.extents[0], images_path));
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
      throw FileError(labels_path, static_cast<long long>(8 + i), text("label {} is not below {}", numbers[i], classes));
  return InMemory<std::uint8_t>(sample, std::move(images.bytes), std::move(numbers), classes);
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
