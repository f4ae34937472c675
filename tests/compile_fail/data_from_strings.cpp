// expect: data::from_tensors takes ranges of numbers or of std::array of numbers, such as std::vector<float>, and tensors on the host
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>

int main() {
  const std::vector<float> y{1, 4};
#ifdef SKEIN_TWIN
  const std::vector<float> x{1, 2};
#else
  const std::vector<std::string> x{"1", "2"};
#endif
  skein::data::from_tensors(x, y);
}
