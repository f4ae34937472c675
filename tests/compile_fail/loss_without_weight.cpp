// expect: a loss knows its divisor: give it double weight(const LossCall<Scalar, Cpu>&) const
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/loss.hpp>

struct Mine {
  static constexpr skein::nn::TargetKind target = skein::nn::TargetKind::vector;
#ifdef SKEIN_TWIN
  template <class Scalar> double weight(const skein::nn::LossCall<Scalar, skein::Cpu>& call) const {
    return static_cast<double>(call.count);
  }
#endif
  template <class Scalar> skein::nn::LossSums operator()(const skein::nn::LossCall<Scalar, skein::Cpu>&) const { return {}; }
};

int main() { skein::nn::assert_loss<Mine>(); }
