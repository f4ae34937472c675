// expect: a pipeline's stages run on the Cpu, with activations of the weights' type: give the model Cpu and float or double
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/stage_executor.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifndef SKEIN_TWIN
using Precision = sk::precision::bf16;
#else
using Precision = double;
#endif

long width = nn::StageExecutor<sk::Model<nn::Linear<10>, sk::Shape<4>, sk::Cpu, Precision>, nn::NoLoss>::width;
