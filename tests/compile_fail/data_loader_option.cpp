// expect: a Loader has no .batch_size: .batch is the samples of a batch over all ranks, .batch_per_rank those of a rank
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>

namespace sk = skein;

int main() {
  const auto data = sk::data::from_tensors(std::vector<float>{1, 2}, std::vector<int>{0, 1});
#ifdef SKEIN_TWIN
  sk::data::Loader loader{data, {.batch = 32}};
#else
  sk::data::Loader loader{data, {.batch_size = 32}};
#endif
}
