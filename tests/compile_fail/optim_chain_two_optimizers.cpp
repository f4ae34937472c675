// expect: a chain ends with its optimizer and has no other: transforms come before it
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::Adam{});
#else
auto optimizer = sk::optim::chain(sk::optim::Sgd{}, sk::optim::Adam{});
#endif
