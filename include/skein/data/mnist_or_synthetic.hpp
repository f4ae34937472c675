// SPDX-License-Identifier: Apache-2.0
// Real digits where they are, drawn ones where they are not: for demonstrations that must run anywhere and say what they took.
#pragma once
#include <cstdint>
#include <string>

#include "mnist.hpp"
#include "synthetic_digits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

/// A training and a test set, and in words where they come from.
struct SourcedTrainTest {
  InMemory<std::uint8_t> train, test;
  std::string source;  ///< "MNIST from ../shared/data/mnist", or what was drawn instead
  bool synthetic = false;
};

/// MNIST from where search_folders("mnist") finds it, else synthetic digits (`samples` to train, a sixth to test; another seed
/// draws others). A folder that is named is the only one looked into, and it must hold MNIST. Throws FileError where it does not,
/// and for files that are there but malformed: those are never papered over.
SourcedTrainTest mnist_or_synthetic(const std::string& folder = {}, std::int64_t samples = 60000, Seed seed = {});

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "mnist_or_synthetic.ipp"
#endif
