// SPDX-License-Identifier: Apache-2.0
// Images of another size: by a triangle filter along each side, as Pillow's and torchvision's antialiased bilinear resizing do
// it.
#pragma once
#include <span>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Height and width of an image.
struct ImageSize {
  int height = 0, width = 0;
  friend constexpr bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// One image (height, width, channels) in another size, between whose pixels values are interpolated linearly. Where it becomes
/// smaller, each new pixel is the weighted mean of all that it covers. Throws ArgumentError where a side is not positive or the
/// values are not those of `from`.
std::vector<float> resize(std::span<const float> image, ImageSize from, ImageSize to, int channels);

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "resize.ipp"
#endif
