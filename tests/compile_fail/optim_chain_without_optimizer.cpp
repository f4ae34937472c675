// expect: a chain ends with its optimizer, as in chain(ClipNorm{1.0f}, Sgd{}): its last is a transform
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::Sgd{});
#else
auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::ClipNorm{2});
#endif
