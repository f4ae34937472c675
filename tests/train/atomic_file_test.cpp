// SPDX-License-Identifier: Apache-2.0
#include <skein/train/atomic_file.hpp>
#include <skein/train/input_file.hpp>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <sys/wait.h>

#include "support/temporary_folder.hpp"

namespace sk = skein;
using sk::train::AtomicFile;

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
  CHECK_THROWS_WITH(AtomicFile(folder / "x"),
                    partial + ": is being written by another process or thread: Resource temporarily unavailable");
  first.append("1", 1);
  first.commit();
  CHECK(support::read_text(folder / "x") == "1");
}

TEST_CASE("what cannot be written is a FileError with the reason") {
  support::TemporaryFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder / "no/x"), (folder / "no/x.partial") + ": cannot be created: No such file or directory");
  std::filesystem::create_directory(folder / "d");
  AtomicFile onto_folder(folder / "d");
  CHECK_THROWS_AS(onto_folder.commit(), sk::FileError);
  if (std::filesystem::exists("/dev/full")) {
    std::filesystem::create_symlink("/dev/full", folder / "full.partial");
    CHECK_THROWS_AS(AtomicFile(folder / "full"), sk::FileError);  // a link in place of the partial file is not followed
  }
}

TEST_CASE("an input file reads whole blocks or throws with the byte") {
  support::TemporaryFolder folder;
  put(folder / "x", "0123456789");
  const sk::train::InputFile file(folder / "x");
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

TEST_CASE("what is no regular file is refused without waiting for it") {
  support::TemporaryFolder folder;
  CHECK_THROWS_WITH(sk::train::InputFile(folder / "none"), (folder / "none") + ": cannot be opened: No such file or directory");
  CHECK_THROWS_WITH(sk::train::InputFile(folder / "."), (folder / ".") + ": is not a regular file");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(sk::train::InputFile(folder / "pipe"), (folder / "pipe") + ": is not a regular file");
}
