// expect: char is no number: take std::vector<std::uint8_t>, whose samples are served as byte / 255
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <skein/data/from_tensors.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Character = std::uint8_t;
#else
using Character = char;
#endif
int main() {
  const std::vector<Character> pixels(40, Character{7});
  const std::vector<int> labels(10, 1);
  (void)sk::data::from_tensors(pixels, {2, {2, 2}}, labels);
}
