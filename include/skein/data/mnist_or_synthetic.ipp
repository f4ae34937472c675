// SPDX-License-Identifier: Apache-2.0
// The bodies of mnist_or_synthetic.hpp.
#pragma once
#include "mnist_or_synthetic.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE SourcedTrainTest mnist_or_synthetic(const std::string& folder, std::int64_t samples, Seed seed) {
  if (const std::string found = folder.empty() ? find_images("mnist") : folder; !found.empty()) {
    TrainTest sets = mnist(found);
    return {sets.train, sets.test, "MNIST from " + found, false};
  }
  const InMemory<std::uint8_t> all = synthetic_digits(samples + samples / 6, seed);
  return {all.slice(0, samples), all.slice(samples, all.size()),
          "synthetic digits (MNIST was not found; scripts/data mnist fetches it)", true};
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
