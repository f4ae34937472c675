// SPDX-License-Identifier: Apache-2.0
// What a machine keeps of processes that have ended, and what is said of what is small or takes long. That ranks notice the end
// of another is tests/house/dead_rank.
#include "skein/comm/mpi/process_watch.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <chrono>
#include <string>
#include <thread>

#include "../../support/said.hpp"
#include "skein/comm/mpi/long_wait.hpp"
#include "skein/comm/mpi/node_meeting.hpp"
#include "skein/comm/node/node_pages.hpp"
#include "skein/comm/node/segment.hpp"

namespace comm = skein::comm;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {
bool exists(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDONLY, 0);
  if (file >= 0) ::close(file);
  return file >= 0;
}
/// The name of a file in shared memory that a process leaves, which is then killed, or told to stay.
std::string left_by_a_process(pid_t& pid) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid = ::fork();
  if (pid == 0) {
    char name[64] = "";
    (void)comm::make_shared_file(name, 4096);
    (void)!::write(ends[1], name, sizeof name);
    ::pause();
    ::_exit(0);
  }
  char name[64] = "";
  REQUIRE(::read(ends[0], name, sizeof name) == sizeof name);
  ::close(ends[0]), ::close(ends[1]);
  return name;
}
void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}
}  // namespace

TEST_CASE("shared memory that a killed process has left is removed, and nobody else's") {
  pid_t dead = 0, alive = 0;
  const std::string left = left_by_a_process(dead), used = left_by_a_process(alive);
  end(dead);
  CHECK(exists(left));
  const std::string foreign = "/skein-1-" + std::to_string(dead) + "-1-0";  // of processes that are numbered elsewhere
  ::close(shm_open(foreign.c_str(), O_CREAT | O_RDWR, 0600));
  CHECK(comm::sweep_shared_files() >= 1);
  CHECK_FALSE(exists(left));
  CHECK(exists(used));
  CHECK(exists(foreign));
  end(alive);
  shm_unlink(used.c_str());
  shm_unlink(foreign.c_str());
}

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
    std::this_thread::sleep_for(100ms);
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
