// expect: the state of a metric must be sums that ranks can add: std::span<double> sums()
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/metrics.hpp>

struct Hits {
  double state[2] = {0, 0};
  static constexpr std::string_view name() { return "hits"; }
  template <class Scalar> void add(skein::train::Rows<Scalar> outputs, skein::train::Labels) {
    state[1] += double(outputs.count);
  }
#ifdef SKEIN_TWIN
  std::span<double> sums() { return state; }
#else
  double sums() { return state[0]; }
#endif
  double value() const { return state[0] / state[1]; }
};

int main() {
  skein::train::AnyMetric metric{Hits{}};
  return static_cast<int>(metric.sums().size()) - 2;
}
