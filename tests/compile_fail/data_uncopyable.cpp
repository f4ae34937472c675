// expect: split, subset, slice, map and join keep a copy of a data set that has a name, and this one cannot be copied: let it hold its arrays, such as a Tensor, by a std::shared_ptr
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/subset.hpp>
#include <skein/tensor/create.hpp>
#include <skein/tensor/tensor.hpp>

#include <memory>

using Series = skein::Tensor<float, 2>;

/// Windows of a series.
struct Windows {
#ifdef SKEIN_TWIN
  std::shared_ptr<const Series> series = std::make_shared<const Series>(skein::zeros<float>(100, 2));
#else
  Series series = skein::zeros<float>(100, 2);
#endif
  std::int64_t size() const { return 76; }
  skein::Extents sample_extents() const { return {2, {24, 2}}; }
  void gather(skein::data::Indices, float*, long) const {}
};

int main() {
  const Windows windows;
  const auto [train, test] = skein::data::split(windows, 0.8);
  return train.size() > test.size() ? 0 : 1;
}
