// expect: an image is Shape<height, width, channels>, as in Shape<28, 28, 1>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

using Net = skein::nn::Sequential<skein::nn::Conv2d<8, skein::Kernel<5>>>;

int main() {
#ifdef SKEIN_TWIN
  skein::Model<Net, skein::Shape<28, 28, 1>> model;
#else
  skein::Model<Net, skein::Shape<1, 28, 28>> model;
#endif
  (void)model;
}
