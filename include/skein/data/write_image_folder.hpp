// SPDX-License-Identifier: Apache-2.0
// A data set of images as folders of PNG files, which ImageFolder reads. Needs the target skein::images (image_file.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "../core/text.hpp"
#include "image_file.hpp"
#include "view.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// Throws ArgumentError where two classes would lie in one folder, or one in none of its own.
inline void check_class_names(const std::vector<std::string>& names) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string& name = names[k];
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos)
      throw ArgumentError("write_image_folder: the class name " + in_quotes(name, '"') + " is no name of a folder");
    if (name.front() == '.')
      throw ArgumentError("write_image_folder: the class name " + in_quotes(name, '"') +
                          " begins with a point: such a folder is hidden, and ImageFolder leaves it out");
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k), name) !=
        names.begin() + static_cast<std::ptrdiff_t>(k))
      throw ArgumentError("write_image_folder: two classes have the name " + in_quotes(name, '"') +
                          ": give each a folder of its own");
  }
}
/// Throws FileError where the folder has something in it that is not hidden.
inline void check_empty_folder(const std::string& root) {
  std::error_code none;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(root, none))
    if (const std::string name = entry.path().filename().string(); !name.starts_with('.'))
      throw FileError(root, -1, "has " + in_quotes(name, '"') + " in it already: write the set into a folder of its own");
}
/// The pixels of sample i. Throws ArgumentError for a value that is none.
inline void round_pixels(const std::vector<float>& x, std::int64_t i, std::vector<std::uint8_t>& to) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    const float pixel = x[k] * 255 + 0.5f;
    if (!(pixel >= 0 && pixel < 256))
      throw ArgumentError(
          text("write_image_folder: sample {} has the value {}, and pixels are 0 to 1: write the set as it is before "
               "normalize(), set.normalize(0, 1)",
               i, x[k]));
    to[k] = static_cast<std::uint8_t>(pixel);
  }
}
}  // namespace detail

/// Writes each sample of a set of images as a PNG file, root/class/000012.png, in folders that it makes: those of `class_names`,
/// and 0, 1, ... of classes without a name; of more than ten classes 00, 01, ..., so that ImageFolder, which numbers classes in
/// the order of their names, gives back the same labels. Names that are given in another order change them. Throws ArgumentError
/// for a set without one label a sample, or whose samples are not (height, width, 1 or 3), for a value that is not within 0 and
/// 1, as of a set that is normalised, and for a class name that is no name of a folder, begins with a point or stands there
/// twice; FileError where a folder or a file cannot be written, and where `root` has something in it, which would be part of the
/// set. A class without a sample gets a folder without a file, which ImageFolder refuses.
template <bool Linked = SKEIN_WITH_IMAGES != 0>
void write_image_folder(const DatasetView& set, const std::string& root, std::vector<std::string> class_names = {}) {
  detail::assert_images_linked<Linked>();
  const Extents extents = set.sample_extents();
  if (extents.rank != 3 || (extents.e[2] != 1 && extents.e[2] != 3) || set.target().kind != TargetKind::label ||
      set.target().each != 1)
    throw ArgumentError("write_image_folder: samples are images (height, width, 1 or 3), each with one class number");
  const std::size_t digits = std::to_string(std::max<long>(set.target().count, 1) - 1).size();
  for (int k = static_cast<int>(class_names.size()); k < set.target().count; ++k) {
    const std::string number = std::to_string(k);
    class_names.push_back(std::string(digits - number.size(), '0') + number);
  }
  detail::check_class_names(class_names);
  detail::check_empty_folder(root);
  for (const std::string& name : class_names) {
    const std::filesystem::path folder = std::filesystem::path(root) / name;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw FileError(folder.string(), -1, "the folder cannot be made", error.value());
  }
  ImageBytes image{{extents.e[0], extents.e[1]}, extents.e[2], {}};
  image.values.resize(static_cast<std::size_t>(extents.count()));
  std::vector<float> x(image.values.size());
  for (std::int64_t i = 0; i < set.size(); ++i) {
    std::int32_t label = 0;
    set.serve(Indices(&i, 1), Destination<float>{.x = x.data(), .pitch = static_cast<long>(x.size()), .labels = &label});
    if (label < 0 || label >= static_cast<std::int32_t>(class_names.size()))
      throw ArgumentError(text("write_image_folder: sample {} has the label {} of {} classes", i, label, class_names.size()));
    detail::round_pixels(x, i, image.values);
    char name[32];
    std::snprintf(name, sizeof name, "%06lld.png", static_cast<long long>(i));
    write_png<Linked>((std::filesystem::path(root) / class_names[static_cast<std::size_t>(label)] / name).string(), image);
  }
}

}  // namespace skein::inline SKEIN_ABI::data
