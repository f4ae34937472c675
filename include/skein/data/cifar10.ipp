// SPDX-License-Identifier: Apache-2.0
// The bodies of cifar10.hpp.
#pragma once
#include "cifar10.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE InMemory<std::uint8_t> read_cifar10(const std::vector<std::string>& paths, std::uint64_t limit) {
  constexpr std::size_t pixels = 32 * 32, record = 1 + 3 * pixels;
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (const std::string& path : paths)
    skein::detail::reading(path, [&] {
      ByteSource source(path);
      const std::vector<unsigned char> bytes = source.rest(limit);
      if (bytes.empty() || bytes.size() % record != 0)
        source.fail(static_cast<std::int64_t>(bytes.size() / record * record),
                    "is no file of CIFAR-10's binary version: it has " + std::to_string(bytes.size()) +
                        " bytes, which are not whole records of 3073");
      const std::size_t count = bytes.size() / record, before = labels.size();
      images.resize((before + count) * 3 * pixels);
      labels.resize(before + count);
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned char* from = bytes.data() + i * record;
        if (from[0] > 9)
          source.fail(static_cast<std::int64_t>(i * record), "label " + std::to_string(from[0]) + " is not below 10");
        labels[before + i] = from[0];
        std::uint8_t* to = images.data() + (before + i) * 3 * pixels;
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t k = 0; k < pixels; ++k) to[3 * k + c] = from[1 + c * pixels + k];
      }
      return 0;
    });
  return InMemory<std::uint8_t>({3, {32, 32, 3}}, std::move(images), std::move(labels), 10);
}

SKEIN_INLINE SourcedTrainTest cifar10(const std::string& folder) {
  const std::vector<std::string> folders = folder.empty() ? search_folders("cifar10") : std::vector<std::string>{folder};
  std::string looked;
  for (const std::string& f : folders) {
    if (detail::file_exists(f + "/data_batch_1.bin")) {
      std::vector<std::string> batches;
      for (const char* n : {"1", "2", "3", "4", "5"}) batches.push_back(f + "/data_batch_" + n + ".bin");
      return {read_cifar10(batches), read_cifar10({f + "/test_batch.bin"}), "CIFAR-10 from " + f, false};
    }
    if (detail::file_exists(f + "/train_subset_10000.bin"))
      return {read_cifar10({f + "/train_subset_10000.bin"}), read_cifar10({f + "/test_subset_2000.bin"}),
              "a subset of CIFAR-10 (10,000 + 2,000 images) from " + f, false};
    looked += (looked.empty() ? "" : ", ") + f;
  }
  throw FileError(
      folder.empty() ? "cifar10" : folder, -1,
      "neither data_batch_1.bin, ... and test_batch.bin nor train_subset_10000.bin and test_subset_2000.bin are there. "
      "Looked in: " +
          looked + ". Set SKEIN_DATA to the folder that holds cifar10/");
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
