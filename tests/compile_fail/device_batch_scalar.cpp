// expect: a batch's samples and targets are of the model's scalar, its labels 32-bit integers: read the data as that, or give Model the data's scalar
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Scalar = double;
#else
using Scalar = float;
#endif

void use(sk::Executor<sk::Model<sk::nn::Linear<2>, sk::Shape<3>, sk::Cpu, double>, sk::nn::Mse>& executor) {
  executor.forward_backward(sk::BatchView<Scalar>{});
}
