// SPDX-License-Identifier: Apache-2.0
// The file of a measured timeline: what is written is read, a line that is none is named.
#include <catch2/catch.hpp>

#include <fstream>

#include <support/temporary_folder.hpp>

#include "../examples/experiments/support/timelines.hpp"

TEST_CASE("experiments: timelines are read as they were written", "[experiments]") {
  using namespace skein::plan;
  support::TemporaryFolder folder;
  Timeline first = timeline_of(one_f_one_b(2, 3)), second = timeline_of(interleaved(2, 2, 4));
  first.title = "1F1B, with, commas";
  experiments::write_timelines(folder / "t.csv", {first, second});
  const std::vector<Timeline> read = experiments::read_timelines(folder / "t.csv");
  REQUIRE(read.size() == 2);
  CHECK(read[0].title == "1F1B, with, commas");
  CHECK((read[1].ranks == 2 && read[1].stages == 4));
  REQUIRE(read[1].steps.size() == second.steps.size());
  for (std::size_t i = 0; i < second.steps.size(); ++i) {
    CHECK(read[1].steps[i].step == second.steps[i].step);
    CHECK((read[1].steps[i].rank == second.steps[i].rank && read[1].steps[i].end == second.steps[i].end));
  }
  std::ofstream(folder / "t.csv", std::ios::app) << "0,0,7,0,0,1\n";  // there is no task 7
  const std::size_t lines = 2 + first.steps.size() + second.steps.size();
  CHECK_THROWS_WITH(experiments::read_timelines(folder / "t.csv"),
                    Catch::Contains("line " + std::to_string(lines + 1) + " is neither"));
  CHECK_THROWS_AS(experiments::read_timelines(folder / "absent.csv"), skein::FileError);
}
