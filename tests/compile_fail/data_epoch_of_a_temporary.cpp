// expect: the loader must outlive its epoch: give it a name, data::Loader<> loader{set, {...}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>

namespace sk = skein;

int main() {
  const auto data = sk::data::from_tensors(std::vector<float>{1, 2}, std::vector<int>{0, 1});
  long samples = 0;
#ifdef SKEIN_TWIN
  sk::data::Loader<> loader{data, {.batch = 2}};
  for (const auto& batch : loader.epoch(0)) samples += batch.count;
#else
  for (const auto& batch : sk::data::Loader<>{data, {.batch = 2}}.epoch(0)) samples += batch.count;
#endif
  return samples == 2 ? 0 : 1;
}
