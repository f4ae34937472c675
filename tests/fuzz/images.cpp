// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PNG or JPEG file, and edits of sound ones: an image within the limit of pixels, or a FileError.
#include <skein/data/image_file.hpp>

#include "fixtures/gray_jpeg.hpp"
#include "target.hpp"

namespace {
const fuzz::Bytes& png() {
  static const fuzz::Bytes bytes = [] {
    fuzz::Folder folder;
    const std::string path = folder / "image.png";
    std::vector<std::uint8_t> values(5 * 7 * 3);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(31 * i);
    skein::data::write_png(path, {{5, 7}, 3, values});
    return fuzz::read_file(path);
  }();
  return bytes;
}
const fuzz::Bytes& jpeg() {
  static const fuzz::Bytes bytes(fixtures::gray_jpeg, fixtures::gray_jpeg + sizeof fixtures::gray_jpeg);
  return bytes;
}

void run(fuzz::Input data) {
  if (data.empty()) return;
  static const std::string path = "fuzz";
  constexpr long pixels = 1 << 14;
  const fuzz::Input rest = data.subspan(1);
  fuzz::Bytes bytes(rest.begin(), rest.end());
  if (data[0] & 4) bytes = fuzz::edited(data[0] & 2 ? png() : jpeg(), rest);
  const int channels = data[0] & 1 ? 1 : 3;
  try {
    const skein::data::ImageBytes image = skein::data::detail::decode_image({path, bytes, pixels}, channels);
    const long count = static_cast<long>(image.size.height) * image.size.width;
    if (count < 1 || count > pixels || image.values.size() != static_cast<std::size_t>(count * channels)) std::abort();
  } catch (const skein::FileError& e) {
    if (e.path() != path) std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() {
  std::vector<fuzz::Bytes> all{{4}, {6}, {0}, {1}};
  all[2].insert(all[2].end(), png().begin(), png().end());
  all[3].insert(all[3].end(), jpeg().begin(), jpeg().end());
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(images, run, seeds)
