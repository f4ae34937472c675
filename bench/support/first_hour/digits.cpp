// SPDX-License-Identifier: Apache-2.0
// Writes what sk::data::synthetic_digits gives for the seeds of the cookbook's programs to digits_SEED.npy in this folder, a row
// of 784 pixels and the class each: bench/peer/first_hour/digits.py reads them, so that both sides have the same samples.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <skein/data/synthetic_digits.hpp>
#include <skein/tensor/create.hpp>
#include <skein/tensor/npy.hpp>

int main() {
  for (const auto [seed, count] : {std::pair{1, 4000}, std::pair{2, 1000}, std::pair{7, 5}}) {
    const auto digits = skein::data::synthetic_digits(count, skein::Seed{static_cast<std::uint64_t>(seed)});
    skein::Tensor<std::uint8_t, 2> rows = skein::zeros<std::uint8_t>(count, 785);
    for (long i = 0; i < count; ++i) {
      std::copy_n(digits.stored(i), 784, &rows(i, 0));
      rows(i, 784) = static_cast<std::uint8_t>(digits.label(i));
    }
    skein::save_npy("digits_" + std::to_string(seed) + ".npy", rows);
  }
}
