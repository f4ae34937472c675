// SPDX-License-Identifier: Apache-2.0
// Images in files, PNG and JPEG: needs the target skein::images. A file is not believed: its size is looked at before memory is
// taken, and what is damaged is refused.
#pragma once
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "resize.hpp"

namespace skein::inline SKEIN_ABI::data {

/// The bytes of an image, (height, width, channels).
struct ImageBytes {
  ImageSize size{};
  int channels = 3;
  std::vector<std::uint8_t> values;
};

/// The most pixels of an image that is read, unless the caller says otherwise. A progressive JPEG file takes 6 bytes a pixel
/// while it is read and 3 for its colours: 900 MB.
inline constexpr long image_pixel_limit = 100'000'000;

namespace detail {
/// Is it named as one that can be read: .png, .jpg, .jpeg, in small or large letters.
inline bool names_image(std::string_view path) {
  std::string end(path.substr(std::min(path.size(), path.rfind('.'))));
  for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}
ImageBytes read_image_file(const std::string& path, int channels, long pixel_limit);
void write_png_file(const std::string& path, const ImageBytes& image);

template <bool Linked> consteval void assert_images_linked() {
  static_assert(Linked,
                "images in files need libpng and libjpeg-turbo, and this program is built without them: link skein::images (apt "
                "install libpng-dev libturbojpeg0-dev, and configure again)");
}
}  // namespace detail

/// Reads a PNG or JPEG file with 3 channels (red, green, blue) or 1 (gray): colours become gray (.299 red + .587 green + .114
/// blue), and gray ones become coloured, as needed; transparent pixels are laid over black (half of a value of 200 is 100, as in
/// Pillow's alpha_composite); 16 bits become 8. What a file says of its gamma, its colour space or how to turn it (EXIF) changes
/// nothing. Throws FileError where it is neither, damaged, a JPEG of four colours, or has more pixels than the limit.
template <bool Linked = SKEIN_WITH_IMAGES != 0>
ImageBytes read_image(const std::string& path, int channels = 3, long pixel_limit = image_pixel_limit) {
  detail::assert_images_linked<Linked>();
  if constexpr (Linked) return detail::read_image_file(path, channels, pixel_limit);
}
/// Writes a PNG file. Throws ArgumentError for an image whose values are not as many as its size says, FileError where it cannot
/// be written.
template <bool Linked = SKEIN_WITH_IMAGES != 0> void write_png(const std::string& path, const ImageBytes& image) {
  detail::assert_images_linked<Linked>();
  if constexpr (Linked) detail::write_png_file(path, image);
}

}  // namespace skein::inline SKEIN_ABI::data

#include "image_codecs.hpp"
