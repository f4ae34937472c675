// expect: this is no data set: it lacks gather(data::Indices, float* x, long pitch) const, which copies samples into rows of the caller
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/loader.hpp>

struct Mine {
  long size() const { return 3; }
  skein::Extents sample_extents() const { return {1, {1}}; }
#ifdef SKEIN_TWIN
  void gather(skein::data::Indices, float*, long) const {}
#else
  void gather(skein::data::Indices, float*, long) {}
#endif
};

int main() {
  const Mine mine;
  skein::data::Loader loader{mine, {.batch = 1}};
  return static_cast<int>(loader.steps());
}
