// SPDX-License-Identifier: Apache-2.0
// MNIST and Fashion-MNIST from their four IDX files, plain or gzip, normalised. Where they are not found the exception says
// where they were looked for and how to get them; nothing is ever downloaded by the library.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "idx.hpp"

namespace skein::inline SKEIN_ABI::data {

/// A training and a test set: `auto [train, test] = sk::data::mnist();`
struct TrainTest {
  InMemory<std::uint8_t> train, test;
};

namespace detail {
inline bool file_exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}
/// `stem` or `stem`.gz in `folder`; empty where there is neither.
inline std::string idx_file(const std::string& folder, const std::string& stem) {
  for (const char* end : {"", ".gz"})
    if (file_exists(folder + "/" + stem + end)) return folder + "/" + stem + end;
  return {};
}

inline constexpr const char* idx_stems[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                             "t10k-labels-idx1-ubyte"};

inline bool holds_images(const std::string& folder) {
  for (const char* stem : idx_stems)
    if (idx_file(folder, stem).empty()) return false;
  return true;
}

inline TrainTest read_folder(const std::string& folder, double mean, double deviation) {
  std::string files[4];
  for (int i = 0; i < 4; ++i) files[i] = idx_file(folder, idx_stems[i]);
  TrainTest sets{read_idx_images(files[0], files[1], 10).normalize(mean, deviation),
                 read_idx_images(files[2], files[3], 10).normalize(mean, deviation)};
  if (sets.train.sample_extents() != Extents{3, {28, 28, 1}}) throw FileError(files[0], 8, "its images are not 28 by 28");
  if (sets.test.sample_extents() != Extents{3, {28, 28, 1}}) throw FileError(files[2], 8, "its images are not 28 by 28");
  return sets;
}
}  // namespace detail

/// Where a data set `name` ("mnist") is looked for, in this order: `folder` if it is given, $SKEIN_DATA/name,
/// ../shared/data/name, data/name.
inline std::vector<std::string> search_folders(const std::string& name, const std::string& folder = {}) {
  std::vector<std::string> folders;
  if (!folder.empty()) folders.push_back(folder);
  if (const char* root = std::getenv("SKEIN_DATA"); root && *root) folders.push_back(std::string(root) + "/" + name);
  for (const char* root : {"../shared/data/", "data/"})
    if (const std::string next = root + name; next != folder) folders.push_back(next);
  return folders;
}

/// The first of search_folders(name, folder) that holds the four files; empty where none does.
inline std::string find_images(const std::string& name, const std::string& folder = {}) {
  for (const std::string& f : search_folders(name, folder))
    if (detail::holds_images(f)) return f;
  return {};
}

namespace detail {
inline TrainTest load_images(const std::string& name, const std::string& folder, double mean, double deviation) {
  const std::string found = find_images(name, folder);
  if (!found.empty()) return read_folder(found, mean, deviation);
  std::string looked;
  for (const std::string& f : search_folders(name, folder)) looked += (looked.empty() ? "" : ", ") + f;
  throw FileError(folder.empty() ? name : folder, -1,
                  "the four files " + std::string(idx_stems[0]) + "[.gz], ... are not there. Looked in: " + looked +
                      ". To get them: scripts/data " + name + ", or set SKEIN_DATA to the folder that holds " + name + "/");
}
}  // namespace detail

/// MNIST: 60,000 and 10,000 images of 28 x 28 x 1, ten classes, normalised with 0.1307 and 0.3081. Looks in `folder`, then where
/// search_folders says. Throws FileError where it is in none of them or malformed.
inline TrainTest mnist(const std::string& folder = {}) { return detail::load_images("mnist", folder, 0.1307, 0.3081); }

/// Fashion-MNIST, in the same format; normalised with 0.2860 and 0.3530.
inline TrainTest fashion_mnist(const std::string& folder = {}) {
  return detail::load_images("fashion-mnist", folder, 0.2860, 0.3530);
}

}  // namespace skein::inline SKEIN_ABI::data
