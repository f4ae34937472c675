// SPDX-License-Identifier: Apache-2.0
// Which worker is given which row of an optimizer's table. What a transform then sees of it: tests/train/step/transform_test.cpp.
#include <skein/optim/transform/visit_tensor.hpp>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("each parameter of a part is one worker's, that in whose share its middle lies") {
  const long sizes[] = {1000, 8, 8, 16, 968};  // 2,000 scalars, from 4,000 on
  for (const int count : {1, 2, 3, 4, 7}) {
    sk::plan::Entry e;
    e.offset = 4000;
    int before = 0;
    for (const long size : sizes) {
      e.stored = size;
      int of = 0, owner = -1;
      for (int i = 0; i < count; ++i)
        if (sk::optim::is_of_worker(e, {4000, 6000}, sk::Worker{i, count})) ++of, owner = i;
      CAPTURE(count, e.offset, size);
      CHECK(of == 1);
      CHECK(owner >= before);  // in the order of the arena
      const long middle = e.offset - 4000 + size / 2;
      CHECK(middle * count >= owner * 2000L);
      CHECK(middle * count < (owner + 1) * 2000L);
      before = owner;
      e.offset += size;
    }
  }
}
