// expect: Slice<Begin, End>: End is beyond the last extent of the input
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/slice.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
struct Net : sk::nn::Sequential<sk::nn::Slice<2, 5>> {};
#else
struct Net : sk::nn::Sequential<sk::nn::Slice<2, 6>> {};
#endif

int main() { sk::Model<Net, sk::Shape<4, 4, 5>> model; }
