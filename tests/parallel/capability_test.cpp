// SPDX-License-Identifier: Apache-2.0
// Sets of capabilities.
#include <catch2/catch.hpp>

#include <skein/parallel/capability.hpp>

using skein::parallel::Capabilities, skein::parallel::Capability;

static_assert(!Capabilities{}.has(Capability::synchronizes_gradients));
static_assert(Capabilities{Capability::keeps_state, Capability::owns_part}.has(Capability::owns_part));
static_assert((Capabilities{Capability::owns_part} | Capabilities{Capability::keeps_state}) ==
              Capabilities{Capability::keeps_state, Capability::owns_part});

TEST_CASE("each capability is a member of its own, and the last is the count's", "[parallel]") {
  namespace sp = skein::parallel;
  Capabilities all;
  for (unsigned i = 0; i < sp::capability_count; ++i) {
    CHECK_FALSE(all.has(Capability{i}));
    all = all | Capabilities{Capability{i}};
    CHECK(all.has(Capability{i}));
  }
  CHECK(static_cast<unsigned>(Capability::shares_inverses) + 1 == sp::capability_count);
}
