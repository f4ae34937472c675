// SPDX-License-Identifier: Apache-2.0
#include <skein/train/archive.hpp>
#include <skein/train/records.hpp>

#include <catch2/catch.hpp>
#include <array>
#include <type_traits>

namespace sk = skein;

static_assert(std::is_trivially_copyable_v<sk::train::StepRecord>);

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

TEST_CASE("names of any length and any number of metrics") {
  sk::train::Scores scores;
  scores.set("precision of the first class, weighted", 1);
  scores.set("precision of the first class, not weighted", 2);
  CHECK(scores["precision of the first class, weighted"] == 1);
  CHECK(scores["precision of the first class, not weighted"] == 2);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) scores.set(name, 1);
  CHECK(scores.metrics() == 9);
  sk::train::Scores read;
  sk::train::from_bytes(sk::train::to_bytes(scores), read, "scores");
  CHECK(read.metrics() == 9);
  CHECK(read["precision of the first class, not weighted"] == 2);
}

namespace {
/// Scores as files of archive version 0 have them.
struct OldMetric {
  std::array<char, 24> text{};
  double value = sk::train::not_measured;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & text & value); }
};
struct OldScores {
  double loss = 0.5, accuracy = 0.75;
  std::array<OldMetric, 6> metrics{};
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & loss & accuracy & metrics); }
};
}  // namespace

TEST_CASE("scores of older files are read") {
  OldScores old;
  std::string("mean absolute error").copy(old.metrics[0].text.data(), 24);
  std::string("twenty-four characters++").copy(old.metrics[1].text.data(), 24);
  old.metrics[0].value = 3, old.metrics[1].value = 4;
  sk::train::Scores scores;
  scores.set("what was there before", 1);
  sk::train::from_bytes(sk::train::to_bytes(old), scores, "scores");
  CHECK(scores.accuracy == 0.75);
  CHECK(scores.metrics() == 2);
  CHECK(scores["mean absolute error"] == 3);
  CHECK(scores["twenty-four characters++"] == 4);
}

TEST_CASE("loss and accuracy are read by their names too, where they were measured") {
  sk::train::Scores scores;
  CHECK_THROWS_AS(scores["accuracy"], sk::ArgumentError);
  CHECK_THROWS_AS(scores["loss"], sk::ArgumentError);
  scores.loss = 0.5, scores.accuracy = 0.75;
  CHECK(scores["loss"] == 0.5);
  CHECK(scores["accuracy"] == 0.75);
  CHECK_THROWS_WITH(scores["acc"], "no metric 'acc' was recorded; there are: loss, accuracy");
  scores.set("accuracy", 0.25);  // a metric of that name
  CHECK(scores["accuracy"] == 0.25);
  CHECK_THROWS_WITH(scores["acc"], "no metric 'acc' was recorded; there are: loss, accuracy");
}

TEST_CASE("scores refuse what they do not have") {
  sk::train::Scores scores;
  CHECK_THROWS_WITH(scores["f1"],
                    "no metric 'f1' was recorded; there are none: .metrics of fit or evaluate names those that are");
  for (const char* name : {"a", "b", "c"}) scores.set(name, 1);
  CHECK_THROWS_WITH(scores["f1"], "no metric 'f1' was recorded; there are: a, b, c");
  CHECK_THROWS_AS(scores.set("", 1), sk::ArgumentError);
}
