// expect: a loss is called with a LossCall and returns LossSums: give it LossSums operator()(const LossCall<Scalar, Cpu>&) const
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/loss.hpp>

struct Mine {
  static constexpr skein::nn::TargetKind target = skein::nn::TargetKind::vector;
  template <class Scalar> double weight(const skein::nn::LossCall<Scalar, skein::Cpu>& call) const {
    return static_cast<double>(call.count);
  }
#ifdef SKEIN_TWIN
  template <class Scalar> skein::nn::LossSums operator()(const skein::nn::LossCall<Scalar, skein::Cpu>&) const { return {}; }
#else
  template <class Scalar> double operator()(const skein::nn::LossCall<Scalar, skein::Cpu>&) const { return 0; }
#endif
};

int main() { skein::nn::assert_loss<Mine>(); }
