// expect: images in files need libpng and libjpeg-turbo, and this program is built without them: link skein::images
// SPDX-License-Identifier: Apache-2.0
#undef SKEIN_WITH_IMAGES
#define SKEIN_WITH_IMAGES 0
#include <skein/data/image_folder.hpp>

namespace data = skein::data;

#ifdef SKEIN_TWIN
std::int64_t images(const data::ImageFolder& there) { return there.size(); }
#else
std::int64_t images() { return data::ImageFolder("images").size(); }
#endif
