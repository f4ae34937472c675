// SPDX-License-Identifier: Apache-2.0
// CIFAR-10, or images of its shape where it is not there.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <skein/data/cifar10.hpp>
#include <skein/data/synthetic_digits.hpp>

namespace experiments {

/// Drawn digits on 32 x 32 pixels, each in a tint of its own: where CIFAR-10 is not there.
inline skein::data::InMemory<std::uint8_t> tinted_digits(long samples, skein::Seed seed) {
  const auto digits = skein::data::synthetic_digits(samples, seed);
  std::vector<std::uint8_t> images(static_cast<std::size_t>(samples) * 32 * 32 * 3, 0);
  std::vector<std::int32_t> labels;
  for (long i = 0; i < samples; ++i) {
    labels.push_back(digits.label(i));
    const std::uint8_t* const from = digits.stored(i);
    for (long p = 0; p < 28 * 28; ++p)
      for (long c = 0; c < 3; ++c)
        images[static_cast<std::size_t>(((i * 32 + p / 28 + 2) * 32 + p % 28 + 2) * 3 + c)] =
            static_cast<std::uint8_t>(from[p] * (1 + (i / (c + 1)) % 4) / 4);
  }
  return {{3, {32, 32, 3}}, std::move(images), std::move(labels), 10};
}

/// CIFAR-10 of a folder, or of where cifar10() looks; drawn digits where that finds none. Not 0: the first `samples`, and a fifth
/// of them to test; 0 from then on where CIFAR-10 has no more than those. Throws FileError where a folder that was named has
/// none, or a file is malformed.
inline skein::data::SourcedTrainTest cifar_or_digits(const std::string& folder, long& samples) {
  auto found = [&]() -> skein::data::SourcedTrainTest {
    try {
      return skein::data::cifar10(folder);
    } catch (const skein::FileError& e) {
      if (!folder.empty() || e.path() != "cifar10") throw;  // a folder was named, or what was found is not whole
    }
    const long n = samples > 0 ? samples : 10'000;
    return {tinted_digits(n, skein::Seed{1}), tinted_digits(n / 5 + 1, skein::Seed{2}), "drawn digits (CIFAR-10 was not found)",
            true};
  }();
  if (samples > 0 && samples < found.train.size())
    found.train = found.train.take(samples), found.test = found.test.take(std::min(found.test.size(), samples / 5 + 1));
  else if (!found.synthetic) samples = 0;
  return found;
}

}  // namespace experiments
