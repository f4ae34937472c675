// SPDX-License-Identifier: Apache-2.0
// The bodies of cifar10.hpp.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include "cifar10.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

/// Where a folder is: a relative one is of a working directory, which may be another one than its user believes.
inline std::string where_it_is(const std::string& folder) {
  char here[4096];
  const bool relative = folder.front() != '/' && ::getcwd(here, sizeof here);
  const std::string place = relative ? std::string(here) + "/" + folder : folder;
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return place + ", which does not exist";
  return S_ISDIR(facts.st_mode) ? place : place + ", which is no folder";
}

/// Throws the FileError of CIFAR-10 not found: in the folder that was named, or in those that were looked into where none was.
[[noreturn]] inline void refuse_cifar10(const std::string& folder, const std::vector<std::string>& folders) {
  std::string text =
      "neither data_batch_1.bin, ... and test_batch.bin nor train_subset_10000.bin and test_subset_2000.bin are there. Looked "
      "in: ";
  if (folder.empty())
    throw FileError(
        "cifar10", -1,
        text + joined(folders) + ". Set SKEIN_DATA to the folder that holds cifar10/; scripts/data cifar10 fetches it");
  text += where_it_is(folder) + ". Name the folder that holds these files";
  for (const std::string& f : search_folders("cifar10"))
    if (file_exists(f + "/data_batch_1.bin") || file_exists(f + "/train_subset_10000.bin"))
      throw FileError(folder, -1, text + "; they are in " + f + ", where they are looked for if no folder is named");
  throw FileError(folder, -1, text);
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE InMemory<std::uint8_t> read_cifar10(const std::vector<std::string>& paths, std::uint64_t limit) {
  constexpr std::size_t pixels = 32 * 32, record = 1 + 3 * pixels;
  if (paths.empty()) throw ArgumentError("read_cifar10: no file is named: give it data_batch_1.bin, ...");
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (const std::string& path : paths)
    skein::detail::reading(path, [&] {
      ByteSource source(path);
      const std::uint64_t most = std::min(source.most(), limit);
      images.reserve(images.size() + static_cast<std::size_t>(most));  // of a bomb: address space, no memory
      std::size_t got = 0;
      for (unsigned char from[record]; (got = source.read(from, record)) == record;) {
        const std::int64_t at = source.offset() - static_cast<std::int64_t>(record);
        if (static_cast<std::uint64_t>(source.offset()) > limit)
          source.fail(at, skein::text("is larger than the limit of {} bytes", limit));
        if (from[0] > 9) source.fail(at, skein::text("label {} is not below 10", from[0]));
        labels.push_back(from[0]);
        images.resize(images.size() + 3 * pixels);
        std::uint8_t* to = images.data() + images.size() - 3 * pixels;
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t k = 0; k < pixels; ++k) to[3 * k + c] = from[1 + c * pixels + k];
      }
      if (got != 0 || source.offset() == 0)
        source.fail(source.offset() - static_cast<std::int64_t>(got),
                    skein::text("is no file of CIFAR-10's binary version: it has {} bytes, which are not whole records of 3073",
                                source.offset()));
      return 0;
    });
  return InMemory<std::uint8_t>({3, {32, 32, 3}}, std::move(images), std::move(labels), 10);
}

SKEIN_INLINE SourcedTrainTest cifar10(const std::string& folder) {
  const std::vector<std::string> folders = folder.empty() ? search_folders("cifar10") : std::vector<std::string>{folder};
  for (const std::string& f : folders) {
    if (detail::file_exists(f + "/data_batch_1.bin")) {
      std::vector<std::string> batches;
      for (const char* n : {"1", "2", "3", "4", "5"}) batches.push_back(f + "/data_batch_" + n + ".bin");
      return {read_cifar10(batches), read_cifar10({f + "/test_batch.bin"}), "CIFAR-10 from " + f, false};
    }
    if (detail::file_exists(f + "/train_subset_10000.bin"))
      return {read_cifar10({f + "/train_subset_10000.bin"}), read_cifar10({f + "/test_subset_2000.bin"}),
              "a subset of CIFAR-10 (10,000 + 2,000 images) from " + f, false};
  }
  detail::refuse_cifar10(folder, folders);
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
