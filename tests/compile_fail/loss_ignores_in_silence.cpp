// expect: a loss with a member ignore_label says so before a step: give it std::optional<std::int32_t> ignored_label() const
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/loss.hpp>

struct Mine {
  static constexpr skein::nn::TargetKind target = skein::nn::TargetKind::label;
  std::optional<std::int32_t> ignore_label{};
#ifdef SKEIN_TWIN
  std::optional<std::int32_t> ignored_label() const { return ignore_label; }
#endif
  template <class Scalar> double weight(const skein::nn::LossCall<Scalar, skein::Cpu>& call) const {
    return static_cast<double>(call.count);
  }
  template <class Scalar> skein::nn::LossSums operator()(const skein::nn::LossCall<Scalar, skein::Cpu>&) const { return {}; }
};

int main() { skein::nn::assert_loss<Mine>(); }
