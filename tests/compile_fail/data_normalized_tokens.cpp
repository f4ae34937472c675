// expect: data::map cannot normalize tokens: they are numbers of entries of a vocabulary, which a network of sk::Tokens looks up
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map_npy.hpp>
#include <skein/data/normalize.hpp>

int main() {
#ifdef SKEIN_TWIN
  const auto set = skein::data::from_tensors(std::vector<float>{1, 2, 3, 4}, skein::Extents{1, {2}});
#else
  const std::vector<std::int32_t> text{1, 2, 3, 4};
  const skein::data::NextTokens<> set(text, {.length = 2});
#endif
  return static_cast<int>(skein::data::normalize(set, 0.5, 2).size());
}
