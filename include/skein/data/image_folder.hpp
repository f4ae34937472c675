// SPDX-License-Identifier: Apache-2.0
// Folders of images as a data set, a folder for each class, as torchvision's ImageFolder has them: root/cat/1.png,
// root/dog/old/2.jpg. Needs the target skein::images (image_file.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "image_file.hpp"

namespace skein::inline SKEIN_ABI::data {

/// How the images of a folder are served.
struct ImageFolderOptions {
  ImageSize size{};  ///< all become that large (resize(), then rounded to bytes); 0 x 0: all must be as large as the first
  int channels = 3;  ///< red, green, blue; 1: gray
  long pixel_limit = image_pixel_limit;  ///< of an image as it is in its file
};

/// Images in files, read when a batch needs them. The classes are the folders below the root, in the order of their names; within
/// a class files of all folders below count, of links to folders too, in the order of their paths, so that all ranks have the
/// same. Files that are not named .png, .jpg or .jpeg are left out, and so are files and folders whose names begin with a point,
/// which are hidden: .git, ._1.png. Pixels are served as byte / 255, (height, width, channels).
class ImageFolder {
 public:
  static constexpr bool prefers_threads = true;

  /// Lists the files. Throws FileError where the root is no folder, has no folders, or there is no image in one of them,
  /// ArgumentError for other channels than 3 and 1, or a size that is none.
  template <bool Linked = SKEIN_WITH_IMAGES != 0>
  explicit ImageFolder(const std::string& root, const ImageFolderOptions& options = {}) : options_(options) {
    detail::assert_images_linked<Linked>();
    namespace fs = std::filesystem;
    if (options.channels != 1 && options.channels != 3)
      throw ArgumentError(
          skein::text("ImageFolder: .channels is {}: 3, red, green and blue, or 1, gray; transparent pixels are laid over black",
                      options.channels));
    std::error_code none;
    if (!fs::is_directory(root, none)) throw FileError(root, -1, "is no folder");
    Files found;
    for_each_entry(root, [&](const fs::directory_entry& entry) {
      if (entry.is_directory(none)) found.classes.push_back(entry.path().filename().string());
    });
    if (found.classes.empty())
      throw FileError(root, -1, "has no folders: images lie in one for each class, root/class/image.png");
    std::sort(found.classes.begin(), found.classes.end());
    for (std::size_t k = 0; k < found.classes.size(); ++k)
      list_class(fs::path(root) / found.classes[k], static_cast<std::int32_t>(k), found.images);
    all_ = std::make_shared<const Files>(std::move(found));
    const bool given = options.size.height != 0 || options.size.width != 0;
    if (!given) options_.size = detail::read_image_file(path(0), options.channels, options.pixel_limit).size;
    if (options_.size.height < 1 || options_.size.width < 1)
      throw ArgumentError("ImageFolder: .size has a height and a width above 0, or neither");
    stretches_ = given;
  }

  /// Shares the list of files. There is no other move: a set that was moved from is as it was.
  ImageFolder(const ImageFolder&) = default;
  ImageFolder& operator=(const ImageFolder&) = default;

  std::int64_t size() const { return static_cast<std::int64_t>(all_->images.size()); }
  Extents sample_extents() const { return {3, {options_.size.height, options_.size.width, options_.channels}}; }
  Target target() const { return Target::labels(static_cast<int>(all_->classes.size())); }
  /// The names of the folders, by class.
  const std::vector<std::string>& class_names() const { return all_->classes; }
  /// The file of sample i.
  const std::string& path(std::int64_t i) const { return all_->images[static_cast<std::size_t>(i)].first; }

  /// Throws FileError where the file is damaged, or has another size than all and none was asked for.
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    label = all_->images[static_cast<std::size_t>(i)].second;
    const ImageBytes image = detail::read_image_file(path(i), options_.channels, options_.pixel_limit);
    const auto number = [](std::uint8_t byte) { return static_cast<float>(byte) * (1.0f / 255); };
    if (image.size == options_.size) {
      std::transform(image.values.begin(), image.values.end(), x.begin(), number);
      return;
    }
    if (!stretches_)
      throw FileError(path(i), -1,
                      "is " + text(image.size) + ", and the first image of the folder " + text(options_.size) +
                          " (height x width): give ImageFolder a .size that all become");
    std::vector<float> whole(image.values.size());
    std::transform(image.values.begin(), image.values.end(), whole.begin(), number);
    const std::vector<float> resized = resize(whole, image.size, options_.size, image.channels);
    std::transform(resized.begin(), resized.end(), x.begin(), [](float v) { return std::round(v * 255) * (1.0f / 255); });
  }

 private:
  using Images = std::vector<std::pair<std::string, std::int32_t>>;  // their files and labels
  struct Files {
    std::vector<std::string> classes;
    Images images;
  };
  static std::string text(ImageSize s) { return skein::text("{} x {}", s.height, s.width); }
  /// Calls act for each entry of a folder that is not hidden.
  template <class Act> static void for_each_entry(const std::filesystem::path& folder, const Act& act) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (!entry->path().filename().string().starts_with('.')) act(*entry);
    if (error) throw FileError(folder.string(), -1, "the folder cannot be listed", error.value());
  }
  static void list_class(const std::filesystem::path& folder, std::int32_t label, Images& to) {
    const auto before = static_cast<std::ptrdiff_t>(to.size());
    list(folder, label, 0, to);
    if (before == static_cast<std::ptrdiff_t>(to.size()))
      throw FileError(folder.string(), -1, "has no image named .png, .jpg or .jpeg: a class without samples");
    std::sort(to.begin() + before, to.end());
  }
  /// All below a folder that is so deep within its class. Links to folders are followed, also where one leads back.
  static void list(const std::filesystem::path& folder, std::int32_t label, int depth, Images& to) {
    if (depth > 30)
      throw FileError(folder.string(), -1,
                      "is more than 30 folders deep in its class: take out a link that leads back to a folder above");
    for_each_entry(folder, [&](const std::filesystem::directory_entry& entry) {
      std::error_code none;  // of a link that leads nowhere
      if (entry.is_directory(none)) list(entry.path(), label, depth + 1, to);
      else if (entry.is_regular_file(none) && detail::names_image(entry.path().string()))
        to.emplace_back(entry.path().string(), label);
    });
  }

  ImageFolderOptions options_;
  bool stretches_ = false;
  std::shared_ptr<const Files> all_;
};

}  // namespace skein::inline SKEIN_ABI::data
