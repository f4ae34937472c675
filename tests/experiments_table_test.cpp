// SPDX-License-Identifier: Apache-2.0
// The tables of the experiments.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "../examples/experiments/support/table.hpp"

TEST_CASE("experiments: columns of a table are as wide as their widest cell", "[experiments]") {
  experiments::Table table{{"n", "seconds", "over one"}};
  table.row({"1", experiments::cell(0.12345), "1"});
  table.row({"never", experiments::cell(1320), experiments::cell(1.5, 1.25, 1.75)});
  table.row({"-"});
  CHECK(table.text() ==
        "n      seconds               over one\n"
        "1        0.123                      1\n"
        "never     1320  1.500 (1.250 - 1.750)\n"
        "-\n");
  CHECK(experiments::cell(std::nan("")) == "-");
  CHECK(experiments::cell(std::vector<double>{1, 2, 3}) == "2 +- 1");
  CHECK(experiments::cell(std::vector<double>{0.5}) == "0.5");
  CHECK(experiments::cell(std::vector<double>{}) == "-");
}
