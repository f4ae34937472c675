// expect: a chain within a chain would lose its transforms of tensors and norms
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::Lars{}, sk::optim::Sgd{});
#else
auto optimizer = sk::optim::chain(sk::optim::ClipNorm{1}, sk::optim::chain(sk::optim::Lars{}, sk::optim::Sgd{}));
#endif
