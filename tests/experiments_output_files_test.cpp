// SPDX-License-Identifier: Apache-2.0
// Files that experiments and benches write: what cannot be written is said before the work, and a write that fails after all too.
#include <catch2/catch.hpp>

#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include <support/temporary_folder.hpp>

#include "../examples/experiments/support/output_files.hpp"
#include "../examples/experiments/support/results.hpp"

namespace ex = experiments;
using Catch::Contains;

namespace {
/// What is printed on the error output while it lives.
class ErrorOutput {
 public:
  ErrorOutput() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~ErrorOutput() { std::cerr.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

int status_of_figures(const std::string& file) {
  ex::Results results("a bench", {.json = file});
  results.add({.metric = "a figure", .ours = 2});
  return results.finish();
}
}  // namespace

TEST_CASE("A file that cannot be written is refused before the work: which flag, where, why, how to mend it", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string nowhere = folder / "absent/file";
  const std::string mend = ". Name a file in a folder that exists and that you may write to";
  const std::string why = " cannot be written there: No such file or directory" + mend;
  CHECK_THROWS_WITH(ex::check_outputs({.json = nowhere}), Contains(nowhere + ": --json" + why));
  CHECK_THROWS_WITH(ex::check_outputs({.record = nowhere}), Contains(nowhere + ": --record" + why));
  CHECK_THROWS_WITH(ex::check_outputs({.out = nowhere}), Contains(nowhere + ": --out" + why));
  CHECK_THROWS_WITH(ex::check_outputs({.svg = nowhere}), Contains(nowhere + ".svg: --svg" + why));
  CHECK_THROWS_WITH(ex::check_outputs({.json = folder.path()}),
                    Contains("--json cannot be written there: Is a directory" + mend));
  CHECK_THROWS_AS(ex::check_outputs({.svg = nowhere}), skein::FileError);
}

TEST_CASE("Files that can be written are as they were, and no picture is left behind", "[experiments]") {
  const support::TemporaryFolder folder;
  support::write_file(folder / "figures.json", "old\n", 4);
  support::write_file(folder / "drawn.svg", "drawn", 5);
  ex::check_outputs({.json = folder / "figures.json", .record = "/dev/null", .svg = folder / "drawn"});
  ex::check_outputs({.svg = folder / "new"});
  ex::check_outputs({});
  CHECK(support::read_text(folder / "figures.json") == "old\n");
  CHECK(support::read_text(folder / "drawn.svg") == "drawn");
  CHECK(folder.names().size() == 2);
}

TEST_CASE("Figures that a file does not take are said, and the exit status is not 0", "[experiments]") {
  const support::TemporaryFolder folder;
  CHECK(status_of_figures("") == 0);
  CHECK(status_of_figures(folder / "figures.json") == 0);
  CHECK_THAT(support::read_text(folder / "figures.json"), Contains("\"metric\": \"a figure\", \"ours\": 2"));
  const ErrorOutput said;
  CHECK(status_of_figures(folder / "absent/figures.json") == 1);
  CHECK_THAT(said.text(), Contains("a bench: " + folder / "absent/figures.json: --json cannot be written there: No such file"));
  if (!std::filesystem::exists("/dev/full")) return;
  CHECK(status_of_figures("/dev/full") == 1);  // it opens, and is written to when the buffer is emptied
  CHECK_THAT(said.text(), Contains("/dev/full: --json cannot be written there: No space left on device"));
}
