// SPDX-License-Identifier: Apache-2.0
// How image_file.hpp reads and writes files: PNG by libpng, JPEG by libjpeg-turbo. The only place that includes them; empty in a
// program that does not link skein::images.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/atomic_file.hpp"
#include "../core/error.hpp"
#include "../core/input_file.hpp"
#include "image_file.hpp"

#if SKEIN_WITH_IMAGES
#include <png.h>
#include <turbojpeg.h>

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

/// The bytes of a file, and what messages call it.
struct ImageSource {
  const std::string& path;
  std::span<const unsigned char> bytes;
  long pixel_limit;
};

/// Memory for an image of this size. Throws FileError for one that is too large to be meant.
inline ImageBytes image_of(const ImageSource& from, long height, long width, int channels) {
  if (height < 1 || width < 1 || height > from.pixel_limit / width)
    throw FileError(from.path, 0,
                    text("says that it is an image of {} x {} pixels: {} are read at most", width, height, from.pixel_limit));
  ImageBytes image{{static_cast<int>(height), static_cast<int>(width)}, channels, {}};
  image.values.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

/// Makes one channel of three: what JPEG calls luminance, and keeps.
inline void make_gray(ImageBytes& image) {
  std::vector<std::uint8_t>& v = image.values;
  const std::size_t pixels = v.size() / 3;
  for (std::size_t i = 0; i < pixels; ++i)
    v[i] = static_cast<std::uint8_t>((299 * v[3 * i] + 587 * v[3 * i + 1] + 114 * v[3 * i + 2] + 500) / 1000);
  v.resize(pixels);
  image.channels = 1;
}

/// Lays pixels, each with its opacity behind its `channels` values, over black: by the values as they are, not as light.
inline void lay_over_black(ImageBytes& image, int channels) {
  std::vector<std::uint8_t>& v = image.values;
  const auto own = static_cast<std::size_t>(channels), pixels = v.size() / (own + 1);
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < own; ++c)
      v[i * own + c] = static_cast<std::uint8_t>((v[i * (own + 1) + c] * v[i * (own + 1) + own] + 127) / 255);
  v.resize(pixels * own);
  image.channels = channels;
}

/// A PNG file without what it says of its gamma, by which libpng would change the values: they are taken as they are, as other
/// tools of the field do it. Empty where it says nothing.
inline std::vector<unsigned char> without_gamma(std::span<const unsigned char> bytes) {
  std::vector<unsigned char> kept;
  std::size_t done = 0;  // of the file, in `kept` or left out
  const auto keep_to = [&](std::size_t end) { kept.insert(kept.end(), bytes.data() + done, bytes.data() + end); };
  for (std::size_t at = 8; at + 12 <= bytes.size();) {  // chunks: length, name, values, check value
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    std::size_t length = 0;
    for (std::size_t i = at; i < at + 4; ++i) length = length << 8 | bytes[i];
    if (name == "IDAT" || length > bytes.size() - at - 12) break;
    if (name == "gAMA") keep_to(at), done = at + 12 + length;
    at += 12 + length;
  }
  if (done > 0) keep_to(bytes.size());
  return kept;
}

inline ImageBytes read_png(const ImageSource& from, int channels) {
  struct Reader : png_image {
    Reader() : png_image{} { version = PNG_IMAGE_VERSION; }
    ~Reader() { png_image_free(this); }
  } reader;
  const std::vector<unsigned char> plain = without_gamma(from.bytes);
  const std::span<const unsigned char> bytes = plain.empty() ? from.bytes : std::span(plain.data(), plain.size());
  if (!png_image_begin_read_from_memory(&reader, bytes.data(), bytes.size()))
    throw FileError(from.path, -1, std::string("is a damaged PNG file: ") + reader.message);
  const bool colored = (reader.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const auto opacity = reader.format & PNG_FORMAT_FLAG_ALPHA;  // else libpng lays it over black, in linear light
  reader.format = (channels == 1 && !colored ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB) | opacity;
  reader.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as those of 8 bits are, where the file does not say it
  const auto height = static_cast<long>(reader.height), width = static_cast<long>(reader.width);
  if (height > 0 && width / 8 / 1032 > static_cast<long>(from.bytes.size()) / height)  // a bit a pixel, deflate's 1032 for 1
    throw FileError(from.path, 0,
                    text("says that it is an image of {} x {} pixels, which a PNG file of {} bytes cannot hold", width, height,
                         from.bytes.size()));
  const int own = colored ? 3 : channels;
  ImageBytes image = image_of(from, height, width, own + (opacity != 0));
  if (!png_image_finish_read(&reader, nullptr, image.values.data(), 0, nullptr))
    throw FileError(from.path, -1, std::string("is a damaged PNG file: ") + reader.message);
  if (opacity) lay_over_black(image, own);
  if (channels < image.channels) make_gray(image);
  return image;
}

inline ImageBytes read_jpeg(const ImageSource& from, int channels) {
  const struct Close {
    void operator()(void* handle) const { tjDestroy(handle); }
  } close{};
  const std::unique_ptr<void, Close> reader(tjInitDecompress(), close);
  const auto check = [&](int failed) {  // bytes too many between two parts leave out nothing, and cameras write such files
    if (!failed) return;
    const std::string_view why = tjGetErrorStr2(reader.get());
    if (tjGetErrorCode(reader.get()) == TJERR_WARNING && why.find("extraneous bytes") != why.npos) return;
    throw FileError(from.path, -1, "is a damaged JPEG file: " + std::string(why));
  };
#ifdef TJFLAG_LIMITSCANS
  constexpr int most_scans = TJFLAG_LIMITSCANS;  // 500: each scan of a small file may touch the whole image
#else
  constexpr int most_scans = 0;
#endif
  int width = 0, height = 0, sampling = 0, colors = 0;
  const auto size = static_cast<unsigned long>(from.bytes.size());
  check(tjDecompressHeader3(reader.get(), from.bytes.data(), size, &width, &height, &sampling, &colors));
  if (colors == TJCS_CMYK || colors == TJCS_YCCK)
    throw FileError(from.path, -1, "is a JPEG file in the four colors of print (CMYK), which are not read: save it in RGB");
  ImageBytes image = image_of(from, height, width, channels);
  check(tjDecompress2(reader.get(), from.bytes.data(), size, image.values.data(), width, 0, height,
                      channels == 1 ? TJPF_GRAY : TJPF_RGB, most_scans));
  return image;
}

/// A file's bytes as an image, whatever its name.
inline ImageBytes decode_image(const ImageSource& from, int channels) {
  if (channels != 1 && channels != 3)
    throw ArgumentError(text("read_image: an image has 3 channels, red, green and blue, or 1, gray; not {}", channels));
  constexpr unsigned char png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
  const auto begins = [&](std::span<const unsigned char> with) {
    return from.bytes.size() >= with.size() && std::equal(with.begin(), with.end(), from.bytes.begin());
  };
  if (begins(png)) return read_png(from, channels);
  if (begins(jpeg)) return read_jpeg(from, channels);
  throw FileError(from.path, 0, "is neither a PNG nor a JPEG file");
}

inline ImageBytes read_image_file(const std::string& path, int channels, long pixel_limit) {
  return skein::detail::reading(path, [&] {
    const InputFile file(path);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(file.size()));
    file.read_at(0, bytes.data(), bytes.size());
    return decode_image({path, bytes, pixel_limit}, channels);
  });
}

inline void write_png_file(const std::string& path, const ImageBytes& image) {
  if (image.size.height < 1 || image.size.width < 1 || (image.channels != 1 && image.channels != 3) ||
      image.values.size() != static_cast<std::size_t>(image.size.height) * static_cast<std::size_t>(image.size.width) *
                                 static_cast<std::size_t>(image.channels))
    throw ArgumentError(text("write_png: an image of {} x {} with {} channels (1 or 3) has other than {} values",
                             image.size.height, image.size.width, image.channels, image.values.size()));
  png_image about{};
  about.version = PNG_IMAGE_VERSION;
  about.height = static_cast<png_uint_32>(image.size.height);
  about.width = static_cast<png_uint_32>(image.size.width);
  about.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  AtomicFile file(path);
  std::vector<unsigned char> bytes(PNG_IMAGE_PNG_SIZE_MAX(about));
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&about, bytes.data(), &size, 0, image.values.data(), 0, nullptr))
    throw FileError(path, -1, std::string("cannot be written: ") + about.message);
  file.append(bytes.data(), size);
  file.commit();
}

}  // namespace skein::inline SKEIN_ABI::data::detail

SKEIN_END_COLD
#endif
