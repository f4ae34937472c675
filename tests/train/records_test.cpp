// SPDX-License-Identifier: Apache-2.0
#include <skein/train/records.hpp>

#include <catch2/catch.hpp>
#include <type_traits>

namespace sk = skein;

static_assert(std::is_trivially_copyable_v<sk::train::EpochRecord> && std::is_trivially_copyable_v<sk::train::StepRecord>);

TEST_CASE("scores hold metrics by name") {
  sk::train::Scores scores;
  CHECK_FALSE(scores.measured());
  CHECK(scores.metrics() == 0);
  scores.accuracy = 0.5;
  CHECK(scores.measured());
  scores.set("top-5", 0.25);
  scores.set("mean absolute error", 3);
  scores.set("top-5", 0.75);
  CHECK(scores.metrics() == 2);
  CHECK(scores["top-5"] == 0.75);
  CHECK(scores.metric_name(1) == "mean absolute error");
  CHECK(scores.metric_value(1) == 3);
}

TEST_CASE("names are cut to 24 characters, and found by what was kept") {
  sk::train::Scores scores;
  scores.set("twenty-four characters++tail", 1);
  CHECK(scores.metric_name(0) == "twenty-four characters++");
  CHECK(scores["twenty-four characters++"] == 1);
  scores.set("twenty-four characters++other tail", 2);
  CHECK(scores.metrics() == 1);
}

TEST_CASE("scores refuse what they do not have or cannot hold") {
  sk::train::Scores scores;
  CHECK_THROWS_WITH(scores["f1"], "no metric 'f1' was recorded; there are: none");
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) scores.set(name, 1);
  CHECK_THROWS_WITH(scores["f1"], "no metric 'f1' was recorded; there are: a, b, c, d, e, f");
  CHECK_THROWS_WITH(scores.set("g", 1), "a record holds six metrics beside loss and accuracy; 'g' is the seventh");
  CHECK_THROWS_AS(scores.set("", 1), sk::ArgumentError);
}
