// expect: two options of DataParallel say the same thing in two ways: leave one of them out
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>

namespace sk = skein;

template <int N> struct Sometimes : sk::parallel::OptionBase {
  static constexpr sk::parallel::OptionKind kind = sk::parallel::OptionKind::when;
  template <class Inner> class Around : public Inner {};
};

#ifndef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::SelfComm, Sometimes<1>, Sometimes<2>>;
#else
using Policy = sk::parallel::DataParallel<sk::SelfComm, Sometimes<1>>;
#endif

void f(sk::SelfComm& world) { Policy policy{world}; }
