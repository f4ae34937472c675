// expect: or read(std::int64_t index, std::span<float> x, std::int32_t& label) const, which brings one
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/loader.hpp>

struct Mine {
  long size() const { return 3; }
  skein::Extents sample_extents() const { return {1, {1}}; }
  skein::data::Target target() const { return skein::data::Target::labels(2); }
#ifdef SKEIN_TWIN
  void read(std::int64_t, std::span<float>, std::int32_t&) const {}
#else
  void read(std::int64_t, float*, std::int32_t*) const {}
#endif
};

int main() {
  const Mine mine;
  skein::data::Loader loader{mine, {.batch = 1}};
  return static_cast<int>(loader.steps());
}
