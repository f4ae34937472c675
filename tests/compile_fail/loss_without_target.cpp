// expect: a loss says what it compares with: static constexpr nn::TargetKind target. A formula alone
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/loss.hpp>

struct Mine {
#ifdef SKEIN_TWIN
  static constexpr skein::nn::TargetKind target = skein::nn::TargetKind::vector;
#endif
  template <class Scalar> double weight(const skein::nn::LossCall<Scalar, skein::Cpu>& call) const {
    return static_cast<double>(call.count);
  }
  template <class Scalar> skein::nn::LossSums operator()(const skein::nn::LossCall<Scalar, skein::Cpu>&) const { return {}; }
};

int main() { skein::nn::assert_loss<Mine>(); }
