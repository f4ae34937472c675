// SPDX-License-Identifier: Apache-2.0
// The folder of a training's commits as others may leave it; tests/train/run_folder_test.cpp trains into one.
#include <catch2/catch.hpp>

#include <filesystem>

#include <skein/train/commit_folder.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;

TEST_CASE("A link in place of the file that keeps other jobs out is not followed") {
  const support::TemporaryFolder folder;
  support::write_file(folder / "other", "text", 4);
  std::filesystem::create_directory(folder / "run");
  std::filesystem::create_symlink(folder / "other", folder / "run/.lock");
  sk::train::CommitFolder run(folder / "run");
  CHECK_THROWS_WITH(run.lock(0), (folder / "run/.lock") +
                                     ": the file that keeps other jobs out cannot be made: Too many levels of symbolic links");
  CHECK(support::read_text(folder / "other") == "text");
}
