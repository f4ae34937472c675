// SPDX-License-Identifier: Apache-2.0
#include <skein/core/atomic_file.hpp>
#include <skein/core/no_size_signal.hpp>
#include <skein/core/input_file.hpp>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/processes.hpp"
#include "support/temporary_folder.hpp"
#include "support/thrown.hpp"

namespace sk = skein;
using sk::AtomicFile;

namespace {
void put(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.append(text.data(), text.size());
  file.commit();
}
}  // namespace

TEST_CASE("a file appears with its commit, and only then") {
  support::TemporaryFolder folder;
  const std::string path = folder / "x";
  {
    AtomicFile file(path);
    file.append("new", 3);
    CHECK(folder.names() == std::vector<std::string>{"x.partial"});
  }
  CHECK(folder.names().empty());
  put(path, "old text");
  {
    AtomicFile file(path);
    file.append("abc", 3);
    file.write_at(1, "X", 1);
    file.write_at(5, "!", 1);
    CHECK(file.size() == 6);
    CHECK(support::read_text(path) == "old text");
    file.commit();
    CHECK(support::read_text(path) == std::string("aXc\0\0!", 6));
  }
  CHECK(folder.names() == std::vector<std::string>{"x"});
}

TEST_CASE("killed between write and rename, the old file stays, and the next writer takes over") {
  support::TemporaryFolder folder;
  const std::string path = folder / "x";
  put(path, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.append("half of the new and long", 24);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(support::read_text(path) == "old");
  CHECK(folder.names().size() == 2);  // the partial file is left over
  put(path, "new");
  CHECK(support::read_text(path) == "new");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("two writers of one path: the second is told") {
  support::TemporaryFolder folder;
  AtomicFile first(folder / "x");
  const std::string partial = folder / "x.partial";
  CHECK_THROWS_WITH(AtomicFile(folder / "x"), partial +
                                                  ": is being written by another process or thread; if the ranks of one job "
                                                  "write it, let rank 0 do so: Resource temporarily unavailable");
  first.append("1", 1);
  first.commit();
  CHECK(support::read_text(folder / "x") == "1");
}

TEST_CASE("what cannot be written is a FileError with the reason") {
  support::TemporaryFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder / "no/x"), (folder / "no/x.partial") + ": cannot be created: No such file or directory");
  std::filesystem::create_directory(folder / "d");
  CHECK_THROWS_WITH(AtomicFile(folder / "d"), (folder / "d") + ": is no plain file");
  CHECK_THROWS_WITH(AtomicFile("/dev/null"), "/dev/null: is no plain file");
}

TEST_CASE("a link in place of the partial file is not followed") {
  support::TemporaryFolder folder;
  put(folder / "other", "another file's text");
  std::filesystem::create_symlink(folder / "other", folder / "x.partial");
  CHECK_THROWS_WITH(put(folder / "x", "new"), (folder / "x.partial") + ": cannot be created: Too many levels of symbolic links");
  CHECK(support::read_text(folder / "other") == "another file's text");
}

TEST_CASE("an input file reads whole blocks or throws with the byte") {
  support::TemporaryFolder folder;
  put(folder / "x", "0123456789");
  const sk::InputFile file(folder / "x");
  CHECK(file.size() == 10);
  char block[5] = {};
  file.read_at(6, block, 4);
  CHECK(std::string(block) == "6789");
  CHECK_THROWS_WITH(file.read_at(6, block, 5),
                    (folder / "x") + " (byte 10): 5 bytes are wanted from byte 6, but the file ends here");
  CHECK_THROWS_AS(file.read_at(-1, block, 1), sk::FileError);
  CHECK_THROWS_AS(file.read_at(11, block, 0), sk::FileError);
  std::filesystem::resize_file(folder / "x", 3);
  CHECK_THROWS_WITH(file.read_at(6, block, 4), (folder / "x") + " (byte 6): was cut while it was read");
}

TEST_CASE("after a write that failed the old file stays, also where the program goes on to its commit") {
  support::TemporaryFolder folder;
  const std::string path = folder / "x";
  put(path, "old");
  const support::Child child = support::start_process([&]() -> std::string {
    const rlimit small{4096, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    AtomicFile file(path);
    try {
      file.append(std::string(5000, 'x').data(), 5000);
    } catch (const sk::FileError&) {}
    file.write_at(0, "new", 3);
    file.commit();
    return "it was committed";
  });
  CHECK(support::wait_for(child) == path + ": stays as it was: not all of its new contents could be written");
  CHECK(support::read_text(path) == "old");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("what is no regular file is refused without waiting for it") {
  support::TemporaryFolder folder;
  CHECK_THROWS_WITH(sk::InputFile(folder / "none"), (folder / "none") + ": cannot be opened: No such file or directory");
  CHECK_THROWS_WITH(sk::InputFile(folder / "."), (folder / ".") + ": is not a regular file");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(sk::InputFile(folder / "pipe"), (folder / "pipe") + ": is not a regular file");
}

namespace {
unsigned mode_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777u : 0;
}
}  // namespace

TEST_CASE("the new file has the permissions of the old one, from its first byte on") {
  support::TemporaryFolder folder;
  const std::string path = folder / "x";
  put(path, "secret");
  for (const mode_t mode : {0600, 0640, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    AtomicFile file(path);
    CHECK(mode_of(path + ".partial") == mode);
    file.append("more", 4);
    file.commit();
    CHECK(mode_of(path) == mode);
  }
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  AtomicFile file(path);
  CHECK(mode_of(path + ".partial") == 0644);  // of a writer that is killed the next one can take it over
  file.commit();
  CHECK(mode_of(path) == 0444);
}

TEST_CASE("a link stays a link, and the file that it names is replaced") {
  support::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  put(folder / "disk/1", "old");
  std::filesystem::create_symlink("disk/1", folder / "newest");
  std::filesystem::create_symlink(folder / "newest", folder / "twice");
  put(folder / "twice", "new");
  CHECK(std::filesystem::is_symlink(folder / "newest"));
  CHECK(std::filesystem::is_symlink(folder / "twice"));
  CHECK(support::read_text(folder / "disk/1") == "new");
  std::filesystem::create_symlink("disk/2", folder / "dangling");  // as open() with O_CREAT does
  put(folder / "dangling", "first");
  CHECK(support::read_text(folder / "disk/2") == "first");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK_THAT(support::thrown<sk::FileError>([&] { put(folder / "circle", "x"); }),
             Catch::EndsWith("is a link that leads nowhere"));
  if (::geteuid() != 0) return;
  std::filesystem::create_directory(folder / "all");
  REQUIRE(::chmod((folder / "all").c_str(), 01777) == 0);
  std::filesystem::create_symlink(folder / "disk/1", folder / "all/trap");
  REQUIRE(::lchown((folder / "all/trap").c_str(), 1234, 1234) == 0);
  CHECK_THAT(support::thrown<sk::FileError>([&] { put(folder / "all/trap", "x"); }), Catch::Contains("is another user's link"));
  CHECK(support::read_text(folder / "disk/1") == "new");
}

TEST_CASE("a file beyond the limit of sizes is a FileError, not the end of the process") {
  support::TemporaryFolder folder;
  put(folder / "x", "old");
  const support::Child child = support::start_process([&]() -> std::string {
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return "no limit";
    const std::string text(10000, 'x');
    put(folder / "x", text);
    return "it was written";
  });
  CHECK(support::wait_for(child) == (folder / "x.partial") + " (byte 4096): cannot be written: File too large");
  CHECK(support::read_text(folder / "x") == "old");
  CHECK(folder.names() == std::vector<std::string>{"x"});
}
