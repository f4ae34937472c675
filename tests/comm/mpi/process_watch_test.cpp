// SPDX-License-Identifier: Apache-2.0
// What is said of what is small or takes long. That ranks notice the end of another is tests/house/dead_rank.
#include "skein/comm/mpi/process_watch.hpp"

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <csignal>
#include <chrono>
#include <string>
#include <thread>

#include "../../support/said.hpp"
#include "skein/comm/mpi/long_wait.hpp"
#include "skein/comm/mpi/node_meeting.hpp"
#include "skein/comm/node/segment.hpp"

namespace comm = skein::comm;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE("shared memory that is too small is said once") {
  const support::TemporaryFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  const std::string said = support::said(folder, [&] {
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 2; ++i) {
      comm::Segment segment;
      CHECK_FALSE(comm::MpiNodeMeeting{MPI_COMM_SELF}.make(segment, 0, 3));
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
  });
  ::signal(SIGXFSZ, SIG_DFL);
  CHECK_THAT(said, Contains("skein: /dev/shm has no room for ") && Contains("the 3 ranks of this machine exchange by messages"));
  CHECK(said.find('\n') == said.size() - 1);
}

TEST_CASE("a call of MPI that takes long is said, with the rank") {
  const support::TemporaryFolder folder;
  const std::string said = support::said(folder, [&] {
    { const comm::LongWait brief("MPI_Comm_dup", 1, 60); }
    const comm::LongWait wait("MPI_Comm_split", 2, 0.02);
    for (int i = 0; i < 20000 && support::read_text(folder / "said").find("waited 0.04 s") == std::string::npos; ++i)
      std::this_thread::sleep_for(1ms);
  });
  CHECK_THAT(said,
             Contains("skein: rank 2 has waited 0.02 s in MPI_Comm_split, a call of all ranks") && Contains("waited 0.04 s"));
  CHECK_THAT(said, !Contains("MPI_Comm_dup"));
  CHECK(comm::LongWait::long_of(5) == 5);
  CHECK(comm::LongWait::long_of(600) == 60);
}

TEST_CASE("a rank alone, and ranks of one process, watch nobody") {
  comm::ProcessWatch watch(MPI_COMM_SELF, 0, 1);
  CHECK_FALSE(watch.any_ended());
  CHECK_FALSE(watch.has_ended(0));
  CHECK(comm::process_numbers() != 0);
}
