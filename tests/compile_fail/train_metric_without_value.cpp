// expect: a metric needs its result: double value() const
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/metrics.hpp>

struct Hits {
  double state[2] = {0, 0};
  static constexpr std::string_view name() { return "hits"; }
  template <class Scalar> void add(skein::train::Rows<Scalar> outputs, skein::train::Labels) {
    state[1] += double(outputs.count);
  }
  std::span<double> sums() { return state; }
#ifdef SKEIN_TWIN
  double value() const { return state[0] / state[1]; }
#endif
};

int main() { skein::train::assert_metric<Hits>(); }
