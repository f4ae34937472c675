// expect: a loss says what it compares with: static constexpr nn::TargetKind target. A formula alone
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::nn::TargetKind target = sk::nn::TargetKind::vector;
#endif
  template <class Call> double weight(const Call& call) const { return static_cast<double>(call.count); }
  template <class Scalar> sk::nn::LossSums operator()(const sk::nn::LossCall<Scalar, sk::Cpu>&) const { return {}; }
};

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, Own{}, sk::optim::Sgd{}};
}
