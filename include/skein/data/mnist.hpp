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

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

/// A training and a test set: `auto [train, test] = sk::data::mnist();`
struct TrainTest {
  InMemory<std::uint8_t> train, test;
};

namespace detail {
bool file_exists(const std::string& path);
/// `stem` or `stem`.gz in `folder`; empty where there is neither.
std::string idx_file(const std::string& folder, const std::string& stem);

inline constexpr const char* idx_stems[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                             "t10k-labels-idx1-ubyte"};

bool holds_images(const std::string& folder);

TrainTest read_folder(const std::string& folder, double mean, double deviation);
}  // namespace detail

/// Where a data set `name` ("mnist") is looked for by who names no folder, in this order: $SKEIN_DATA/name, ../shared/data/name,
/// data/name.
std::vector<std::string> search_folders(const std::string& name);

/// `folder` where it holds the four files; without one the first of search_folders(name) that does. Empty where there are none.
std::string find_images(const std::string& name, const std::string& folder = {});

namespace detail {
TrainTest load_images(const std::string& name, const std::string& folder, double mean, double deviation);
}  // namespace detail

/// MNIST: 60,000 and 10,000 images of 28 x 28 x 1, ten classes, normalised with 0.1307 and 0.3081. A folder that is named is the
/// only one looked into; without one it is where search_folders("mnist") says. Throws FileError where the files are not there or
/// malformed.
inline TrainTest mnist(const std::string& folder = {}) { return detail::load_images("mnist", folder, 0.1307, 0.3081); }

/// Fashion-MNIST, in the same format; normalised with 0.2860 and 0.3530.
TrainTest fashion_mnist(const std::string& folder = {});

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "mnist.ipp"
#endif
