// SPDX-License-Identifier: Apache-2.0
// The runs that experiments keep in a file, and what they read there.
#include <catch2/catch.hpp>

#include <fstream>

#include <support/temporary_folder.hpp>

#include "../examples/experiments/support/recorded_runs.hpp"

namespace ex = experiments;

TEST_CASE("A run is read as it was written, the last of its ranks, and other settings are passed over", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "times.csv";
  CHECK(ex::recorded_runs(file, "lenet").empty());
  CHECK(ex::record_run(file, "lenet", 2, 6) == "no run of one rank with these settings in " + file + ": no speed-up");
  CHECK(ex::record_run(file, "lenet", 1, 10, {1.5, 8.5}) == "speed-up 1.00, efficiency 1.00");
  CHECK(ex::record_run(file, "lenet x2", 1, 99) == "speed-up 1.00, efficiency 1.00");
  CHECK(ex::record_run(file, "lenet", 2, 5, {0.5}) == "speed-up 2.00, efficiency 1.00");
  std::ofstream(file, std::ios::app) << "lenet,4\nlenet,0,3\nlenet,4,-1\nlenet,x\n";
  const auto runs = ex::recorded_runs(file, "lenet");
  REQUIRE(runs.size() == 2);
  CHECK((runs[0].ranks == 1 && runs[0].seconds == 10 && runs[0].more == std::vector<double>{1.5, 8.5}));
  CHECK((runs[1].ranks == 2 && runs[1].seconds == 5 && runs[1].more == std::vector<double>{0.5}));
  CHECK(ex::seconds_of_one(file, "lenet") == 10);
  CHECK(ex::seconds_of_one(file, "lenet x2") == 99);
  CHECK(ex::seconds_of_one(file, "lene") == 0);
}
