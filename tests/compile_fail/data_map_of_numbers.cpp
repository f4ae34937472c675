// expect: data::map takes a function of (std::span<float> sample) or (std::span<float> sample, std::int64_t index, std::int64_t epoch) that is callable on a const object
// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>

int main() {
  const auto set = skein::data::from_tensors(std::vector<float>{1, 2}, std::vector<float>{1, 4});
#ifdef SKEIN_TWIN
  const auto doubled = skein::data::map(set, [](std::span<float> sample) {
    for (float& v : sample) v *= 2;
  });
#else
  const auto doubled = skein::data::map(set, [](float value) { return 2 * value; });
#endif
  return static_cast<int>(doubled.size());
}
