// SPDX-License-Identifier: Apache-2.0
#include <skein/train/history.hpp>

#include <catch2/catch.hpp>
#include <string>

#include "support/temporary_folder.hpp"

namespace sk = skein;

namespace {
sk::train::EpochRecord epoch(int number, double loss, double accuracy, double validation_loss = sk::train::not_measured,
                             double validation_accuracy = sk::train::not_measured) {
  sk::train::EpochRecord record;
  record.epoch = number;
  record.step = 10 * number;
  record.training.loss = loss;
  record.training.accuracy = accuracy;
  record.validation.loss = validation_loss;
  record.validation.accuracy = validation_accuracy;
  record.learning_rate = 0.1;
  record.seconds = 1.5;
  return record;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
}  // namespace

TEST_CASE("a history is pleasant to ask") {
  sk::History history;
  CHECK(history.empty());
  CHECK_THROWS_WITH(history.back(), "the history has no epoch yet: fit at least one");
  history.add(epoch(1, 0.9, 0.7, 0.8, 0.75));
  history.add(epoch(2, 0.5, 0.8, 0.6, 0.85));
  history.add(epoch(3, 0.3, 0.9, 0.7, 0.85));
  CHECK(history.size() == 3);
  CHECK(history.back().validation.accuracy == 0.85);
  CHECK(history.best().epoch == 2);
  CHECK(history.best(sk::train::highest("accuracy")).epoch == 2);  // the first of equals
  CHECK(history.best(sk::train::lowest("training loss")).epoch == 3);
  history.add(epoch(4, 0.2, 0.95, 0.65, 0.95));
  CHECK(history.best().epoch == 2);  // of the loss, as callbacks have it
  CHECK(history.best(sk::train::highest("accuracy")).epoch == 4);
  CHECK_THROWS_WITH(
      history.best(sk::train::highest("F1")),
      "history.best() watches 'F1', which is not a number after epoch 4; the validation has 'loss', 'accuracy': name "
      "one of these, as in .watch = highest(\"accuracy\")");
  CHECK(history.losses() == std::vector<double>{0.9, 0.5, 0.3, 0.2});
  CHECK(history.accuracies() == std::vector<double>{0.75, 0.85, 0.85, 0.95});
  CHECK(history.seconds() == 6);
  int sum = 0;
  for (const auto& each : history) sum += each.epoch;
  CHECK(sum == 10);
}

TEST_CASE("the best epoch without accuracies, without validation, after a NaN") {
  const double nan = sk::train::not_measured;
  sk::History losses, training, broken;
  losses.add(epoch(1, 0.1, nan, 0.5));
  losses.add(epoch(2, 0.05, nan, 0.4));
  losses.add(epoch(3, 0.01, nan, 0.6));
  CHECK(losses.best().epoch == 2);
  training.add(epoch(1, 0.5, nan));
  training.add(epoch(2, 0.2, nan));
  CHECK(training.best().epoch == 2);
  broken.add(epoch(1, 0.5, nan));
  broken.add(epoch(2, nan, nan));
  CHECK(broken.best().epoch == 1);
  sk::History later, never;
  later.add(epoch(1, nan, nan));
  later.add(epoch(2, 0.5, nan));
  CHECK(later.best().epoch == 2);
  never.add(epoch(1, nan, nan));
  CHECK_THROWS_AS(never.best(), sk::ArgumentError);
}

TEST_CASE("losses are those of the steps where steps were recorded") {
  sk::History history;
  history.reserve(1, 2);
  history.add(sk::train::StepRecord{.step = 1, .epoch = 1, .loss = 2});
  history.add(sk::train::StepRecord{.step = 2, .epoch = 1, .loss = 1});
  history.add(epoch(1, 1.5, 0));
  CHECK(history.losses() == std::vector<double>{2, 1});
  CHECK(history.steps_csv() ==
        "step,epoch,loss,accuracy,learning_rate,samples_per_second,exposed_communication,seconds\n1,1,2,,,,0,0\n2,1,1,,,,0,0\n");
}

TEST_CASE("CSV: a line an epoch, empty where nothing was measured, metrics as columns") {
  sk::History history;
  history.add(epoch(1, 0.25, 0.5));
  history.add(epoch(2, 0.125, 1.0 / 3, 0.5, 0.75));
  history.last().validation.set("a, b", 7);
  CHECK(history.csv() ==
        "epoch,step,loss,accuracy,validation_loss,validation_accuracy,learning_rate,samples_per_second,exposed_communication,"
        "seconds,\"validation_a, b\"\n"
        "1,10,0.25,0.5,,,0.1,,0,1.5,\n"
        "2,20,0.125,0.3333333333333333,0.5,0.75,0.1,,0,1.5,7\n");
  support::TemporaryFolder folder;
  history.write_csv(folder / "history.csv");
  CHECK(support::read_text(folder / "history.csv") == history.csv());
  CHECK(folder.names().size() == 1);
  history.add(sk::train::StepRecord{.step = 1, .epoch = 1, .loss = 2});
  history.write_steps_csv(folder / "steps.csv");
  CHECK(support::read_text(folder / "steps.csv") == history.steps_csv());
}

TEST_CASE("CSV: a metric has one column, whatever other metrics an epoch has") {
  sk::History history;
  for (int e = 1; e <= 2; ++e) {
    history.add(epoch(e, 1, 0.5, 1, 0.5));
    if (e == 2) history.last().validation.set("late", 8);
    history.last().validation.set("always", e);
  }
  CHECK(count(history.csv(), ",validation_always,validation_late\n") == 1);
  CHECK(count(history.csv(), ",1.5,1,\n") == 1);
  CHECK(count(history.csv(), ",1.5,2,8\n") == 1);
}

TEST_CASE("SVG: two panels, a curve and a legend entry for what was measured") {
  sk::History history;
  for (int e = 1; e <= 4; ++e) history.add(epoch(e, 1.0 / e, 1 - 0.1 / e, 1.1 / e, 1 - 0.2 / e));
  const std::string svg = history.svg();
  CHECK(svg.rfind("<svg xmlns=", 0) == 0);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
  CHECK(count(svg, "<polyline") == 4);
  CHECK(count(svg, "<circle") == 16);
  CHECK(count(svg, ">validation</text>") == 2);
  CHECK(count(svg, ">each step</text>") == 0);
  CHECK(count(svg, ">epoch</text>") == 2);
  CHECK(count(svg, " %</text>") >= 3);
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "<text") == count(svg, "</text>"));
}

TEST_CASE("SVG: without an accuracy the right half shows the metrics of the validation") {
  sk::History history;
  for (int e = 1; e <= 3; ++e) {
    auto record = epoch(e, 1.0 / e, sk::train::not_measured);
    record.validation.set("R2", 1 - 1.0 / e);
    record.validation.set("mean absolute error", 2.0 / e);
    history.add(record);
  }
  CHECK(count(history.svg(), ">metrics, validation</text>") == 1);
  CHECK(count(history.svg(), ">R2</text>") == 1);
  CHECK(count(history.svg(), ">mean absolute error</text>") == 1);
  CHECK(count(history.svg(), "no accuracy") == 0);
}

TEST_CASE("SVG: a gap where the loss was NaN; sentences where there is nothing; a logarithmic axis for wide losses") {
  sk::History history;
  CHECK(count(history.svg(), "no loss was recorded") == 1);
  for (int e = 1; e <= 5; ++e) history.add(epoch(e, e == 3 ? sk::train::not_measured : 1.0 / e, sk::train::not_measured));
  CHECK(count(history.svg(), "<polyline") == 2);
  CHECK(count(history.svg(), "no accuracy and no other metric was recorded") == 1);
  CHECK(count(history.svg(), "logarithmic") == 0);
  history.add(epoch(6, 0.001, 1));
  CHECK(count(history.svg(), "loss (logarithmic)") == 1);
}

TEST_CASE("SVG: the losses of steps are a line of at most 400 points behind the epochs") {
  sk::History history;
  for (int s = 1; s <= 5000; ++s) history.add(sk::train::StepRecord{.step = s, .epoch = 1 + (s - 1) / 1000, .loss = 1.0 / s});
  for (int e = 1; e <= 5; ++e) {
    auto record = epoch(e, 1.0 / e, 0.5);
    record.step = 1000 * e;
    history.add(record);
  }
  const std::string svg = history.svg();
  CHECK(count(svg, ">each step</text>") == 1);
  CHECK(svg.size() < 16000);
}

TEST_CASE("a history that cannot be written says where") {
  CHECK_THROWS_WITH(sk::History{}.write_csv("/nowhere/at/all.csv"),
                    "/nowhere/at/all.csv.partial: cannot be created: No such file or directory");
  CHECK_THROWS_AS(sk::History{}.write_svg("/nowhere/at/all.svg"), sk::FileError);
}
