// expect: a Loader stages samples as float or double; tokens come of a Loader<> too, with .tokens = true
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>

#ifdef SKEIN_TWIN
using Number = double;
#else
using Number = int;
#endif

int main() {
  const auto set = skein::data::from_tensors(std::vector<float>{1, 2}, std::vector<float>{1, 4});
  skein::data::Loader<Number> loader{set, {.batch = 1}};
  return static_cast<int>(loader.steps());
}
