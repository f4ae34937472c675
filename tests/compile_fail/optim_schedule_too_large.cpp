// expect: a schedule is a small trivially copyable function of the step (at most 256 bytes): keep large tables outside and capture a pointer
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/optim/schedule.hpp>

int main() {
  static const std::vector<float> factors{1, 0.5f, 0.25f};
#ifdef SKEIN_TWIN
  const auto* table = &factors;
  skein::optim::Schedule schedule = [table](std::int64_t step) { return table->at(static_cast<std::size_t>(step)); };
#else
  skein::optim::Schedule schedule = [table = factors](std::int64_t step) { return table.at(static_cast<std::size_t>(step)); };
#endif
  return schedule(0) > 0 ? 0 : 1;
}
