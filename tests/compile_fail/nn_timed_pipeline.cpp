// expect: Timed is for steps that one rank makes whole: a stage's times are in the trace of its policy
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/timed.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using Two = sk::parallel::Pipeline<sk::nn::Linear<4>, sk::nn::Linear<1>>;

int main() {
  sk::SelfComm world;
  const Two pipeline{world};
  auto model = pipeline.model<sk::Shape<2>>(sk::Seed{1});
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, pipeline};
#else
  sk::StepClock clock;
  sk::Trainer trainer{model, sk::nn::Timed{sk::nn::Mse{}, clock}, sk::optim::Sgd{}, pipeline};
#endif
}
