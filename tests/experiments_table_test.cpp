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

TEST_CASE("experiments: a training that diverged is counted, and no part of the mean", "[experiments]") {
  const double lost = std::nan("");
  CHECK(experiments::cell_of_trained({1, lost, 3}) == "2 +- 1.41 (1 of 3 diverged)");
  CHECK(experiments::cell_of_trained({0.5, lost}) == "0.5 (1 of 2 diverged)");
  CHECK(experiments::cell_of_trained({lost, lost}) == "2 of 2 diverged");
  CHECK(experiments::cell_of_trained({lost}) == "diverged");
  CHECK(experiments::cell_of_trained({1, 2, 3}) == "2 +- 1");
  CHECK(experiments::cell_of_trained({}) == "-");
  CHECK(experiments::diverged({1, 2}).empty());
  CHECK(experiments::numbers_of({1, lost, 3}) == std::vector<double>{1, 3});
}

TEST_CASE("What lasts begins behind the last value that is too small", "[experiments]") {
  const auto from = [](const std::vector<double>& values) { return experiments::lasts_from(values, 0.95); };
  CHECK(from({50, 96, 100, 97}) == 1);
  CHECK(from({96, 90, 100, 97}) == 2);  // not 0, where the first is large enough already
  CHECK(from({100, 99}) == 0);
  CHECK(from({50, 100, 90}) == 3);  // the last one is too small
  CHECK(from({}) == 0);
}
