// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 in its binary version: records of a label and three planes, red, green, blue, of 32 x 32 bytes. Krizhevsky, "Learning
// Multiple Layers of Features from Tiny Images", 2009. Where the files are not found the exception says where they were looked
// for; nothing is ever downloaded by the library.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "mnist_or_synthetic.hpp"

namespace skein::inline SKEIN_ABI::data {

/// The images and labels of files in CIFAR-10's binary version, one file behind the other: bytes of 32 x 32 x 3, channels last,
/// ten classes. Throws FileError for a file that is missing, no regular file, empty, cut within a record, longer than `limit`
/// bytes, or has a label above 9.
InMemory<std::uint8_t> read_cifar10(const std::vector<std::string>& paths, std::uint64_t limit = std::uint64_t{1} << 30);

/// CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin, or, where those are not, train_subset_*.bin of 10,000 and
/// test_subset_*.bin of 2,000 images; `source` says which. Served as byte / 255: data::map with CropAndFlip and cifar10_channels
/// does the rest. A folder that is named is the only one looked into; without one it is where search_folders("cifar10") says.
/// Throws FileError where neither is there, or a file is malformed.
SourcedTrainTest cifar10(const std::string& folder = {});

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "cifar10.ipp"
#endif
