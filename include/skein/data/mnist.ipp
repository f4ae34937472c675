// SPDX-License-Identifier: Apache-2.0
// The bodies of mnist.hpp.
#pragma once
#include "mnist.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE bool file_exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

SKEIN_INLINE std::string idx_file(const std::string& folder, const std::string& stem) {
  for (const char* end : {"", ".gz"})
    if (file_exists(folder + "/" + stem + end)) return folder + "/" + stem + end;
  return {};
}

SKEIN_INLINE bool holds_images(const std::string& folder) {
  for (const char* stem : idx_stems)
    if (idx_file(folder, stem).empty()) return false;
  return true;
}

SKEIN_INLINE TrainTest read_folder(const std::string& folder, double mean, double deviation) {
  std::string files[4];
  for (int i = 0; i < 4; ++i) files[i] = idx_file(folder, idx_stems[i]);
  TrainTest sets{read_idx_images(files[0], files[1], 10).normalize(mean, deviation).made_by({.normalized_as_read = true}),
                 read_idx_images(files[2], files[3], 10).normalize(mean, deviation).made_by({.normalized_as_read = true})};
  if (sets.train.sample_extents() != Extents{3, {28, 28, 1}}) throw FileError(files[0], 8, "its images are not 28 by 28");
  if (sets.test.sample_extents() != Extents{3, {28, 28, 1}}) throw FileError(files[2], 8, "its images are not 28 by 28");
  return sets;
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE std::vector<std::string> search_folders(const std::string& name) {
  std::vector<std::string> folders;
  if (const char* root = std::getenv("SKEIN_DATA"); root && *root) folders.push_back(std::string(root) + "/" + name);
  for (const char* root : {"../shared/data/", "data/"}) folders.push_back(root + name);
  return folders;
}

SKEIN_INLINE std::string find_images(const std::string& name, const std::string& folder) {
  if (!folder.empty()) return detail::holds_images(folder) ? folder : std::string();
  for (const std::string& f : search_folders(name))
    if (detail::holds_images(f)) return f;
  return {};
}

}  // namespace skein::inline SKEIN_ABI::data

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE TrainTest load_images(const std::string& name, const std::string& folder, double mean, double deviation) {
  if (const std::string found = find_images(name, folder); !found.empty()) return read_folder(found, mean, deviation);
  std::string files = std::string("the four files ") + idx_stems[0] + "[.gz], ... are not there";
  if (const std::string elsewhere = folder.empty() ? folder : find_images(name); !elsewhere.empty())
    throw FileError(folder, -1, files + "; they are in " + elsewhere + ", where they are looked for if no folder is named");
  const std::string looked = joined(search_folders(name));
  throw FileError(folder.empty() ? name : folder, -1,
                  files + (folder.empty() ? ". Looked in: " : ", nor in ") + looked + ". To get them: scripts/data " + name +
                      (folder.empty() ? " --to data/" + name + ", or set SKEIN_DATA to the folder that holds " + name + "/"
                                      : " --to " + folder));
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE TrainTest fashion_mnist(const std::string& folder) {
  return detail::load_images("fashion-mnist", folder, 0.2860, 0.3530);
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
