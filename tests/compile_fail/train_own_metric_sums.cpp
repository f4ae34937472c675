// expect: an OwnMetric whose function returns a std::array<double, N> needs a second one, which makes the value of their sums: double operator()(std::array<double, N>) const
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/metrics.hpp>

int main() {
  const auto counts = [](std::span<const float> output, int label) {
    return std::array<double, 2>{double(output[0]), double(label)};
  };
#ifdef SKEIN_TWIN
  const skein::train::OwnMetric ratio{"ratio", counts, [](std::array<double, 2> sums) { return sums[0] / sums[1]; }};
#else
  const skein::train::OwnMetric ratio{"ratio", counts};
#endif
  return ratio.name().empty();
}
