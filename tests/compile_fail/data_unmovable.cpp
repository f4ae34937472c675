// expect: this data set cannot be moved, so nothing can keep it: give it a name, and let it outlive what uses it
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/view.hpp>

struct Mine {
  Mine() = default;
  Mine(const Mine&) = delete;
  long size() const { return 3; }
  skein::Extents sample_extents() const { return {1, {1}}; }
  void gather(skein::data::Indices, float*, long) const {}
};

int main() {
#ifdef SKEIN_TWIN
  const Mine mine;
  const skein::data::DatasetView view = mine;
#else
  const skein::data::DatasetView view = Mine{};
#endif
  return view ? 0 : 1;
}
