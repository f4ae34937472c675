// expect: a batch has x, pitch, labels, targets, target_pitch, count, global_count, first and held: derive it from skein::BatchView<Scalar>, or fill one of those
// SPDX-License-Identifier: Apache-2.0
#include <skein/device/batch_view.hpp>

struct Mine {
  const float* x = nullptr;
  const float* targets = nullptr;
  const std::int32_t* labels = nullptr;
  long pitch = 0, target_pitch = 0, count = 0, global_count = 0, first = 0;
#ifdef SKEIN_TWIN
  int held = 0;
#endif
};

long count(const Mine& mine) { return skein::batch_view<float, skein::Cpu>(mine).count; }
