// expect: this is no data set: it lacks sample_extents() const, the Extents of one sample; vectors and spans become one by data::from_tensors(x, y)
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/view.hpp>

int main() {
  const std::vector<float> x{1, 2}, y{1, 4};
#ifdef SKEIN_TWIN
  const auto set = skein::data::from_tensors(x, y);
  const skein::data::DatasetView view = set;
#else
  const skein::data::DatasetView view = x;
#endif
  return static_cast<int>(view.size());
}
