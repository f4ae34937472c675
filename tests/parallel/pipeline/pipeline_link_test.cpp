// SPDX-License-Identifier: Apache-2.0
#include <skein/parallel/pipeline/pipeline_link.hpp>

#include <catch2/catch.hpp>

#include <skein/comm/self/self_comm.hpp>

namespace sk = skein;

namespace pipeline_link_test {
int alive = 0;
/// A request that is counted.
struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
  void wait() {}
};
struct CountedComm : sk::SelfComm {
  Counted isend(sk::DeviceSpan<const std::byte>, int, int) { return {}; }
  CountedComm split(int, int) { return *this; }
  Counted irecv(sk::DeviceSpan<std::byte>, int, int) { return {}; }
};
}  // namespace pipeline_link_test
using namespace pipeline_link_test;

TEST_CASE("of a link's requests there are as many as any train step of the pipeline has asked for", "[parallel]") {
  CountedComm comm;
  sk::parallel::detail::PipelineLinkOver<CountedComm&> link(comm);
  link.reserve(8);
  CHECK(alive == 8);
  link.reserve(1);  // another train step of the pipeline begins
  CHECK(alive == 8);
  link.reserve(9);
  CHECK(alive == 9);
}
