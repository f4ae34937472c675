// expect: a loss's formula travels into kernels: let it hold numbers, not vectors or strings
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/own_loss.hpp>

struct Weighted {
#ifdef SKEIN_TWIN
  float weight = 2;
  constexpr auto operator()(const auto& row) const { return -weight * row.log_probability(); }
#else
  std::vector<float> weight = {2};
  constexpr auto operator()(const auto& row) const { return -weight[0] * row.log_probability(); }
#endif
};

int main() {
  skein::nn::OwnLoss loss{Weighted{}};
  (void)loss;
}
