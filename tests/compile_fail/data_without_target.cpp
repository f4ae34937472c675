// expect: this data set has labels or targets but no target() const: let it return data::Target::labels(classes) or data::Target::vector(length)
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <skein/data/dataset.hpp>

struct Mine {
  long size() const { return 3; }
  skein::Extents sample_extents() const { return {1, {1}}; }
  void gather(skein::data::Indices, float*, long) const {}
  void labels(skein::data::Indices, std::int32_t*) const {}
#ifdef SKEIN_TWIN
  skein::data::Target target() const { return skein::data::Target::labels(2); }
#endif
};

int main() { skein::data::assert_dataset<Mine>(); }
