// expect: the function of an OwnMetric takes (std::span<const float> output, int label) or (std::span<const float> output, std::span<const float> target) and returns a number or a std::array<double, N>
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/metrics.hpp>

int main() {
#ifdef SKEIN_TWIN
  const skein::train::OwnMetric surest{"surest", [](std::span<const float> output, int) { return output[0]; }};
#else
  const skein::train::OwnMetric surest{"surest", [](const float* output, int) { return output[0]; }};
#endif
  return surest.name().empty();
}
