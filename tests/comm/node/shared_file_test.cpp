// SPDX-License-Identifier: Apache-2.0
// Files in memory that processes share: how the others open one, and what is left of a maker that was killed.
#include "skein/comm/node/shared_file.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "skein/comm/node/segment.hpp"

namespace comm = skein::comm;
using comm::OpenBy;

namespace {
bool has_name(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDONLY, 0);
  if (file >= 0) ::close(file);
  return file >= 0;
}
/// A process that has made a file, and waits until it is killed.
struct Maker {
  explicit Maker(OpenBy by) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid = ::fork();
    if (pid == 0) {
      comm::SharedFileText own = "";
      const int file = comm::make_shared_file(own, 4096, by);
      (void)!::write(file, "values", 6);
      (void)!::write(ends[1], own, sizeof own);
      for (;;) ::pause();
    }
    REQUIRE(::read(ends[0], text, sizeof text) == sizeof text);
    ::close(ends[0]), ::close(ends[1]);
  }
  ~Maker() { end(); }
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }
  pid_t pid = 0;
  comm::SharedFileText text = "";
};
std::string read_from(int file) {
  char bytes[6] = {};
  return file >= 0 && ::pread(file, bytes, sizeof bytes, 0) == 6 ? std::string(bytes, 6) : "nothing";
}
/// Another rank, which may not look at the descriptors of this one: it opens what has a name alone.
struct OpensNames final : comm::NodeMeeting {
  void tell(comm::SharedFileText& text) override { told.emplace_back(text); }
  bool all(bool good) override { return good && told.back().starts_with("/skein-"); }
  std::vector<std::string> told{};
};
}  // namespace

TEST_CASE("a file without a name is opened by the others while its maker has it, and leaves nothing when that is killed") {
  Maker maker(OpenBy::descriptor);
  REQUIRE(maker.text[0] != 0);
  REQUIRE(maker.text[0] != '/');
  const int file = comm::open_shared_file(maker.text);
  CHECK(read_from(file) == "values");
  maker.end();
  CHECK(read_from(file) == "values");  // who has opened it still has it
  struct stat about {};
  REQUIRE(::fstat(file, &about) == 0);
  CHECK(about.st_nlink == 0);
  ::close(file);
  CHECK(comm::open_shared_file(maker.text) < 0);
}

TEST_CASE("a file of processes that are numbered elsewhere, or no text of one, is not opened") {
  const Maker maker(OpenBy::descriptor);
  std::string text = maker.text;
  text[0] = text[0] == '1' ? '2' : '1';
  for (const char* wrong : {text.c_str(), "", "a", "1:1:1", "/skein-1-1-1-0"}) CHECK(comm::open_shared_file(wrong) < 0);
}

TEST_CASE("a name that a killed process has left is removed, and nobody else's") {
  Maker dead(OpenBy::name), alive(OpenBy::name);
  const std::string foreign = "/skein-1-" + std::to_string(dead.pid) + "-1-0";  // of processes that are numbered elsewhere
  dead.end();
  CHECK(has_name(dead.text));
  ::close(shm_open(foreign.c_str(), O_CREAT | O_RDWR, 0600));
  CHECK(comm::sweep_shared_files() >= 1);
  CHECK_FALSE(has_name(dead.text));
  CHECK(read_from(comm::open_shared_file(alive.text)) == "values");
  CHECK(has_name(foreign));
  comm::forget_shared_file(alive.text);
  CHECK_FALSE(has_name(alive.text));
  shm_unlink(foreign.c_str());
}

TEST_CASE("where the others cannot open a descriptor the file has a name until all have it") {
  OpensNames meeting;
  comm::Segment segment;
  REQUIRE(segment.create(meeting, 0, 2));
  REQUIRE(meeting.told.size() == 2);
  CHECK_FALSE(has_name(meeting.told[1]));
  std::memset(segment.slot(1, 0), 1, segment.slot_bytes());
}
