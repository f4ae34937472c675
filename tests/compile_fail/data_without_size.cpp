// expect: this is no data set: it lacks size() const, the number of samples
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/dataset.hpp>

struct Mine {
#ifdef SKEIN_TWIN
  long size() const { return 3; }
#else
  long count() const { return 3; }
#endif
  skein::Extents sample_extents() const { return {1, {1}}; }
  void gather(skein::data::Indices, float*, long) const {}
};

int main() { skein::data::assert_dataset<Mine>(); }
