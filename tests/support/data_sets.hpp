// SPDX-License-Identifier: Apache-2.0
// Published data sets for tests that need them: where one is not on this machine, the test says so and is skipped.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

#include <catch2/catch.hpp>
#include <skein/data/cifar10.hpp>
#include <skein/data/mnist.hpp>

namespace support {

/// Images in IDX files, "mnist" or the like, are not there: then says that the test is skipped.
inline bool lacks_images(const std::string& name) {
  if (!skein::data::find_images(name).empty()) return false;
  WARN("SKIPPED: " << name << " is not there; scripts/data " << name << " fetches it, or set SKEIN_DATA");
  return true;
}

/// The subset of CIFAR-10. Nothing where it is not there: then says that the test is skipped.
inline std::optional<skein::data::SourcedTrainTest> cifar10_subset() {
  const char* root = std::getenv("SKEIN_DATA");
  const std::string folder = (root ? root : "../shared/data") + std::string("/cifar10");
  if (skein::data::detail::file_exists(folder + "/train_subset_10000.bin")) return skein::data::cifar10(folder);
  WARN("SKIPPED: the subset of CIFAR-10 is not there; set SKEIN_DATA");
  return std::nullopt;
}

}  // namespace support
