// expect: this layer takes a flat shape: put Flatten before it
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifndef SKEIN_TWIN
using Policy = sk::parallel::Pipeline<nn::Conv2d<4, sk::Kernel<3>>, nn::Linear<10>>;
#else
using Policy = sk::parallel::Pipeline<nn::Conv2d<4, sk::Kernel<3>>, nn::Sequential<nn::Flatten, nn::Linear<10>>>;
#endif

long parameters = sk::parallel::StagedModel<Policy, sk::Shape<8, 8, 3>>::parameter_count;
