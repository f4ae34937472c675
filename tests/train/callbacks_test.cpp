// SPDX-License-Identifier: Apache-2.0
#include <skein/train/callbacks.hpp>
#include <skein/train/history.hpp>
#include <skein/train/watch.hpp>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fixtures/schedules.hpp"
#include "support/temporary_folder.hpp"

namespace sk = skein;
using namespace skein::train;

namespace {
EpochRecord epoch(int number, double validation_loss, double validation_accuracy = not_measured) {
  EpochRecord record;
  record.epoch = number;
  record.training.loss = 1;
  record.validation.loss = validation_loss;
  record.validation.accuracy = validation_accuracy;
  return record;
}
/// The epoch after which the callback stops a training of these validation losses; 0 if it does not.
template <class T> int stops_after(T callback, std::vector<double> losses, std::string* reason = nullptr) {
  AnyCallback any(callback);
  FitControl control;
  for (std::size_t e = 0; e < losses.size(); ++e) {
    auto record = epoch(static_cast<int>(e) + 1, losses[e]);
    any.on_epoch_end(record, control);
    if (!control.stopping()) continue;
    if (reason) *reason = control.reason();
    return static_cast<int>(e) + 1;
  }
  return 0;
}
struct Recorder {
  std::vector<std::string> seen;
  void on_fit_begin(FitControl&) { seen.push_back("begin"); }
  void on_epoch_begin(int epoch, FitControl&) { seen.push_back("epoch " + std::to_string(epoch)); }
  void on_step_end(const StepRecord& step, FitControl&) { seen.push_back("step " + std::to_string(step.step)); }
  void on_epoch_end(EpochRecord& record, FitControl&) { seen.push_back("end " + std::to_string(record.epoch)); }
  void on_fit_end(const sk::History& history) { seen.push_back("fit " + std::to_string(history.size())); }
};
static_assert(Callback<EarlyStopping> && Callback<TimeLimit> && Callback<LearningRateLog> && Callback<Recorder> &&
              !Callback<int>);
/// BestValue of archive version 0.
struct BestBefore {
  double value = 0.5;
  int epoch = 3;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & value & epoch); }
};
/// A callback of a program, whose state has no name.
template <class Number> struct Counts {
  Number count = 0;
  void on_epoch_end(EpochRecord&, FitControl&) { ++count; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & count); }
};
const std::string remedy =
    ": give fit the callbacks of the training that was saved, in the same order; or begin anew: in another .checkpoint.folder, "
    "or with its weights by a new Trainer, and load_weights(path)";
double pretended_time = 0;
}  // namespace

TEST_CASE("early stopping counts epochs without improvement") {
  std::string reason;
  CHECK(stops_after(EarlyStopping{.patience = 2}, {1, 0.9, 0.95, 0.91, 0.5}, &reason) == 4);
  CHECK(reason == "early stopping: no better since epoch 2");
  CHECK(stops_after(EarlyStopping{.patience = 3}, {1, 0.9, 0.95, 0.91, 0.5, 0.6, 0.6}) == 0);
}

TEST_CASE("early stopping: a change that is too small does not count, NaN is the worst") {
  CHECK(stops_after(EarlyStopping{.patience = 2, .least_change = 0.1}, {1, 0.95, 0.92, 0.5}) == 3);
  CHECK(stops_after(EarlyStopping{.patience = 2, .least_change = 0.1}, {1, 0.95, 0.85, 0.8}) == 0);
  EarlyStopping accuracy{.patience = 1, .watch = highest("accuracy")};
  FitControl control;
  auto good = epoch(1, 1, 0.5), broken = epoch(2, not_measured, 0.4);
  accuracy.on_epoch_end(good, control);
  accuracy.on_epoch_end(broken, control);
  CHECK(control.stopping());
}

TEST_CASE("what comes without a choice watches the validation loss, else the training loss") {
  EpochRecord record;
  record.epoch = 1, record.training.loss = 3;
  CHECK(watched_value(record, {}) == 3);
  record.validation.loss = 2, record.validation.accuracy = 0.5;
  record.validation.set("top-3", 0.75);
  CHECK(watched_value(record, {}) == 2);
  CHECK(watched_value(record, lowest("training loss")) == 3);
  CHECK(watched_value(record, highest("accuracy")) == 0.5);
  CHECK(watched_value(record, highest("top-3")) == 0.75);
}

TEST_CASE("a watched value that is not there, or NaN, in the first epoch is refused with the names that are") {
  FitControl control;
  auto record = epoch(1, 1, 0.5);
  record.validation.set("top-3", 0.75);
  EarlyStopping wrong{.watch = highest("top-5")};
  CHECK_THROWS_WITH(wrong.on_epoch_end(record, control),
                    "EarlyStopping watches 'top-5', which is not a number after epoch 1; the validation has 'loss', 'accuracy', "
                    "'top-3': name one of these, as in .watch = highest(\"accuracy\")");
  auto regression = epoch(1, 1);
  regression.validation = {};
  auto best = best_model([](const EpochRecord&) {}, highest("accuracy"));
  CHECK_THROWS_WITH(best.on_epoch_end(regression, control),
                    "best_model watches 'accuracy', which is not a number after epoch 1; the training, as there is no .validate "
                    "set, has 'loss': name one of these, as in .watch = lowest(\"loss\")");
  regression.training.loss = not_measured, regression.samples_per_second = 100;
  CHECK_THROWS_AS(EarlyStopping{}.on_epoch_end(regression, control), skein::ArgumentError);
}

TEST_CASE("an epoch that made no step, or whose validation measured nothing, is never the best", "[train]") {
  FitControl control;
  EarlyStopping stopping{.restore_best = true};
  const auto keeps = [&](EpochRecord record) {
    control.agree_to_keep(false, 1);
    stopping.on_epoch_end(record, control);
    return control.keeps_weights();
  };
  auto none = epoch(1, 1);
  none.training = none.validation = {};
  CHECK_FALSE(keeps(none));  // its steps overflowed: samples_per_second is not known
  none.epoch = stopping.patience + 1;
  CHECK_FALSE(keeps(none));
  CHECK_FALSE(control.stopping());
  auto broken = epoch(2, 1);
  broken.training.loss = 1.5, broken.validation = {};
  CHECK(keeps(broken));
  auto whole = epoch(3, 2);
  whole.training.loss = 1.4;
  CHECK(keeps(whole));  // a validation at last
  broken.epoch = 4, broken.training.loss = 1.0;
  CHECK_FALSE(keeps(broken));
  CHECK_FALSE(keeps(epoch(5, 2.5)));
  CHECK(keeps(epoch(6, 1.9)));
}

TEST_CASE("a watched name that a fit will not measure is refused before it, unless a callback in front may add it") {
  EpochRecord measured;
  measured.training.loss = measured.validation.loss = 0;
  measured.validation.set("top-3", 0);
  const auto says = [&](Callbacks callbacks) -> std::string {
    try {
      callbacks.check(measured);
    } catch (const skein::ArgumentError& e) { return e.what(); }
    return "";
  };
  CHECK(says({EarlyStopping{.watch = highest("top-5")}}) ==
        "fit: EarlyStopping watches 'top-5', which this fit does not measure; the validation has 'loss', 'top-3': name one of "
        "these, as in .watch = lowest(\"loss\")");
  CHECK(says({EarlyStopping{}, ReduceOnPlateau{.watch = highest("training accuracy")}}) ==
        "fit: ReduceOnPlateau watches 'training accuracy', which this fit does not measure; the training has 'loss': name one of "
        "these, as in .watch = lowest(\"loss\")");
  CHECK_THAT(says({EarlyStopping{.watch = lowest("top-3")}}), Catch::StartsWith("EarlyStopping takes the least 'top-3'"));
  CHECK(says({EarlyStopping{.watch = highest("top-3")}, EarlyStopping{.watch = lowest("training loss")}}).empty());
  const auto adds = [](EpochRecord& record) { record.validation.set("F1", 0.5); };
  EarlyStopping own{.watch = highest("F1")};
  CHECK(says({adds, std::ref(own)}).empty());
  CHECK_THAT(says({std::ref(own), adds}), Catch::StartsWith("fit: EarlyStopping watches 'F1'"));
  CHECK(says({[](auto& record) { record.validation.set("F1", 0.5); }, std::ref(own)}).empty());
  const auto refused = Catch::StartsWith("fit: EarlyStopping watches 'F1'");  // those in front cannot add it
  CHECK_THAT(says({TimeLimit{.seconds = 1}, std::ref(own)}), refused);
  CHECK_THAT(says({[](const EpochRecord&) {}, std::ref(own)}), refused);
  CHECK_THAT(says({[](const EpochRecord&, FitControl&) {}, std::ref(own)}), refused);
  struct Prints {
    void on_epoch_end(const EpochRecord&, FitControl&) const {}
  };
  CHECK_THAT(says({Prints{}, std::ref(own)}), refused);
  CHECK_THAT(says({adds, EarlyStopping{.watch = lowest("accuracy")}}), Catch::StartsWith("EarlyStopping takes the least"));
}

TEST_CASE("a value whose better direction is known is not watched in the other one") {
  FitControl control;
  auto record = epoch(1, 1, 0.5);
  record.validation.set("top-3", 0.75), record.validation.set("mean absolute error", 2), record.validation.set("cost", 3);
  const auto says = [&](Watch watch) -> std::string {
    EarlyStopping stopping{.watch = watch};
    try {
      stopping.on_epoch_end(record, control);
    } catch (const skein::ArgumentError& e) { return e.what(); }
    return "";
  };
  CHECK(says(lowest("accuracy")) ==
        "EarlyStopping takes the least 'accuracy' for the best, and the greatest one is: .watch = highest(\"accuracy\")");
  CHECK(says(highest("loss")) ==
        "EarlyStopping takes the greatest 'loss' for the best, and the least one is: .watch = lowest(\"loss\")");
  CHECK_FALSE(says(lowest("top-3")).empty());
  CHECK(says(highest("top-3")).empty());
  CHECK_FALSE(says(lowest("training accuracy")).empty());
  CHECK_FALSE(says(highest("mean absolute error")).empty());
  CHECK_FALSE(says({"accuracy"}).empty());  // as it comes, the least
  CHECK(says(lowest("mean absolute error")).empty());
  CHECK(says(highest("cost")).empty());  // of one's own: nobody knows
  auto best = best_model([](const EpochRecord&) {}, highest("training loss"));
  CHECK_THROWS_WITH(best.on_epoch_end(record, control), Catch::StartsWith("best_model takes the greatest 'training loss'"));
}

TEST_CASE("early stopping keeps the weights of each best epoch if it is to restore them") {
  FitControl control;
  EarlyStopping stopping{.patience = 1, .restore_best = true};
  auto first = epoch(1, 1), second = epoch(2, 2);
  stopping.on_epoch_end(first, control);
  CHECK(control.keeps_weights());
  control.agree_to_keep(false, 1.0);
  stopping.on_epoch_end(second, control);
  CHECK_FALSE(control.keeps_weights());
  CHECK(control.stopping());
}

TEST_CASE("ranks that ask for different rates take the first one's; stopping leaves the rate") {
  FitControl control;
  CHECK(control.rate_factor() == 1);
  control.set_rate_factor(0.5);
  control.agree_to_stop(false);
  CHECK(control.rate_factor() == 0.5);
  control.agree_to_keep(true, 0.25);
  CHECK((control.rate_factor() == 0.25 && control.keeps_weights()));
  CHECK_THROWS_WITH(control.set_rate_factor(-1), Catch::Contains("the factor of the rate is a finite number, 0 or more"));
  CHECK_THROWS_WITH(control.set_rate_factor(not_measured), Catch::Contains("nan): the factor of the rate is a finite number"));
}

TEST_CASE("best model calls its function at each best epoch") {
  std::vector<int> best;
  auto callback = best_model([&](const EpochRecord& record) { best.push_back(record.epoch); }, highest("accuracy"));
  FitControl control;
  int number = 0;
  for (const double accuracy : {0.5, 0.4, 0.6, 0.6, not_measured, 0.7}) {
    auto record = epoch(++number, 1, accuracy);
    callback.on_epoch_end(record, control);
  }
  CHECK(best == std::vector<int>{1, 3, 6});
  CHECK_FALSE(control.stopping());
}

TEST_CASE("the learning-rate log keeps changes") {
  LearningRateLog log;
  FitControl control;
  for (int s = 1; s <= 6; ++s) log.on_step_end(StepRecord{.step = s, .learning_rate = s < 4 ? 0.1 : 0.01}, control);
  CHECK(log.rates == std::vector<std::pair<std::int64_t, double>>{{1, 0.1}, {4, 0.01}});
  support::TemporaryFolder folder;
  log.write_csv(folder / "rates.csv");
  CHECK(support::read_text(folder / "rates.csv") == "step,learning_rate\n1,0.1\n4,0.01\n");
}

TEST_CASE("the time limit stops while the longest step still fits") {
  TimeLimit limit{.seconds = 10, .now = +[] { return pretended_time; }};
  FitControl control;
  pretended_time = 1000;
  limit.on_fit_begin(control);
  for (const double now : {1002.0, 1003.0, 1005.5}) {
    pretended_time = now;
    limit.on_step_end({}, control);
  }
  CHECK_FALSE(control.stopping());
  pretended_time = 1008;
  limit.on_step_end({}, control);
  CHECK(control.stopping());
  CHECK(control.reason() == "time limit: after 8.0 s the next step may not end within 10.0 s");
}

TEST_CASE("a time limit that is not above zero, or is none, is refused") {
  TimeLimit{.seconds = 1e-6}.check_options();
  for (const double seconds : {TimeLimit{}.seconds, -1.0, not_measured})
    CHECK_THROWS_WITH(Callbacks{TimeLimit{.seconds = seconds}}.check({}),
                      Catch::StartsWith("TimeLimit: .seconds is ") && Catch::EndsWith("more than 0"));
}

TEST_CASE("the time limit by epochs does not look at steps") {
  TimeLimit limit{.seconds = 10, .whole_epochs = true, .now = +[] { return pretended_time; }};
  FitControl control;
  pretended_time = 0;
  limit.on_fit_begin(control);
  EpochRecord record;
  pretended_time = 4;
  limit.on_epoch_end(record, control);
  CHECK_FALSE(control.stopping());
  pretended_time = 8;
  limit.on_step_end({}, control);
  CHECK_FALSE(control.stopping());
  limit.on_epoch_end(record, control);
  CHECK(control.stopping());
}

TEST_CASE("the first reason to stop is kept, cut where it is long; ranks agree in the end") {
  FitControl control;
  control.stop(std::string(500, 'x'));
  control.stop("second");
  CHECK(control.reason() == std::string(127, 'x'));
  control.agree_to_stop(false);
  CHECK_FALSE(control.stopping());
  control.agree_to_stop(true);
  CHECK(control.reason() == "another rank asked to stop");
}

TEST_CASE("callbacks: every hook, in order, by reference and by value; functions run at the end of epochs") {
  Recorder recorder;
  int calls = 0, controlled = 0;
  Callbacks callbacks{std::ref(recorder), [&](EpochRecord& record) { record.validation.set("calls", ++calls); },
                      [&](EpochRecord&, FitControl& control) { controlled++, control.stop("own"); }, EarlyStopping{}};
  FitControl control;
  sk::History history;
  callbacks.on_fit_begin(control);
  callbacks.on_epoch_begin(1, control);
  callbacks.on_step_end(StepRecord{.step = 7}, control);
  auto record = epoch(1, 1);
  callbacks.on_epoch_end(record, control);
  callbacks.on_fit_end(history);
  CHECK(recorder.seen == std::vector<std::string>{"begin", "epoch 1", "step 7", "end 1", "fit 0"});
  CHECK((calls == 1 && controlled == 1));
  CHECK(record.validation["calls"] == 1);
  CHECK(control.reason() == "own");
}

TEST_CASE("steps are recorded only where a callback looks at them") {
  CHECK_FALSE(Callbacks{EarlyStopping{}}.wants_steps());
  CHECK(Callbacks{EarlyStopping{}, TimeLimit{.seconds = 1}}.wants_steps());
  CHECK_FALSE(Callbacks{}.wants_steps());
}

TEST_CASE("the state of callbacks survives a checkpoint") {
  EarlyStopping before{.patience = 2};
  LearningRateLog log;
  Callbacks callbacks{std::ref(before), std::ref(log), [](EpochRecord&) {}};
  FitControl control;
  auto first = epoch(1, 0.5), second = epoch(2, 0.7);
  callbacks.on_epoch_end(first, control);
  callbacks.on_epoch_end(second, control);
  callbacks.on_step_end(StepRecord{.step = 3, .learning_rate = 0.5}, control);

  EarlyStopping after{.patience = 2};
  LearningRateLog log_after;
  Callbacks resumed{std::ref(after), std::ref(log_after), [](EpochRecord&) {}};
  const auto bytes = to_bytes(callbacks);
  CHECK(Callbacks::saved_in(bytes) == 3);
  from_bytes(bytes, resumed);
  CHECK((after.best.value == before.best.value && after.best.epoch == 1));
  CHECK(log_after.rates == log.rates);
  auto third = epoch(3, 0.6);
  resumed.on_epoch_end(third, control);
  CHECK(control.stopping());

  Callbacks fewer{EarlyStopping{}};
  CHECK_THROWS_WITH(from_bytes(bytes, fewer, "f"),
                    "f (byte 12): holds the state of 3 callbacks, but this training has 1" + remedy);
}

TEST_CASE("the best value of a file that does not say of what goes on with the next epoch") {
  BestValue best;
  from_bytes(to_bytes(BestBefore{}), best, "f");
  CHECK((best.value == 0.5 && best.epoch == 3));
  auto broken = epoch(4, 1);
  broken.training.loss = 0.6, broken.validation = {};
  CHECK_FALSE(best.improved_by(broken, {}, 0, "best_model"));
  CHECK_FALSE(best.improved_by(epoch(4, 0.9), {}, 0, "best_model"));
  CHECK(best.improved_by(epoch(5, 0.4), {}, 0, "best_model"));
}

TEST_CASE("callbacks that were others when a file was saved are named by their place, also where states have equal sizes") {
  const auto bytes = to_bytes(Callbacks{EarlyStopping{}, Counts<std::int64_t>{}, Counts<float>{}, [](EpochRecord&) {}});
  const auto says = [&](Callbacks now) -> std::string {
    try {
      from_bytes(bytes, now, "f");
    } catch (const sk::FileError& e) { return e.what(); }
    return "";
  };
  CHECK(says({EarlyStopping{}, Counts<std::int64_t>{}, Counts<float>{}, [](EpochRecord&) {}}).empty());
  const auto best = best_model([](const EpochRecord&) {});
  CHECK(says({best, Counts<std::int64_t>{}, Counts<float>{}, [](EpochRecord&) {}}) ==
        "f (byte 69): callback 1 of 4 was EarlyStopping, and is best_model now" + remedy);
  CHECK(says({Counts<float>{}, Counts<std::int64_t>{}, EarlyStopping{}, [](EpochRecord&) {}}) ==
        "f (byte 69): callback 1 of 4 was EarlyStopping, and is one without a name now" + remedy);
  CHECK(says({EarlyStopping{}, Counts<float>{}, Counts<std::int64_t>{}, [](EpochRecord&) {}}) ==
        "f (byte 101): callback 2 of 4 (byte 12): 4 bytes are left over: this is another object than the one that is read" +
            remedy);
  CHECK_THAT(says({EarlyStopping{}, Counts<std::int64_t>{}, [](EpochRecord&) {}, Counts<float>{}}),
             Catch::Contains("callback 3 of 4 (byte 4): 8 bytes are left over"));
}

TEST_CASE("the state of callbacks that a file of an earlier version has, without names, is read") {
  EarlyStopping before{}, after{};
  before.best.value = 0.25, before.best.epoch = 2;
  OutArchive archive;
  (archive & std::uint32_t{0} & std::uint64_t{2} & AnyCallback(std::ref(before)) & AnyCallback(Counts<float>{.count = 7}));
  Counts<float> counts;
  Callbacks callbacks{std::ref(after), std::ref(counts)};
  from_bytes(archive.take(), callbacks);
  CHECK((after.best.value == 0.25 && after.best.epoch == 2 && counts.count == 7));
}

TEST_CASE("the reduction on a plateau agrees with PyTorch's ReduceLROnPlateau") {
  AnyCallback reduce{ReduceOnPlateau{.factor = 0.5, .patience = 2, .cooldown = 1, .least_factor = 0.1}};
  FitControl control;
  reduce.check_options();
  for (std::size_t e = 0; e < fixtures::plateau_metrics.size(); ++e) {
    auto record = epoch(static_cast<int>(e) + 1, fixtures::plateau_metrics[e]);
    reduce.on_epoch_end(record, control);
    CHECK(control.rate_factor() == Approx(fixtures::plateau_lr[e]));
  }
  AnyCallback wrong{ReduceOnPlateau{.factor = 2}};
  CHECK_THROWS_WITH(wrong.check_options(), "ReduceOnPlateau: .factor must be between 0 and 1");
  CHECK_THROWS_WITH(ReduceOnPlateau{.patience = -1}.check_options(), "ReduceOnPlateau: .patience is -1: give 0 or more epochs");
  CHECK_THROWS_WITH(ReduceOnPlateau{.cooldown = -1}.check_options(), "ReduceOnPlateau: .cooldown is -1: give 0 or more epochs");
  CHECK_THROWS_WITH(ReduceOnPlateau{.threshold = not_measured}.check_options(),
                    "ReduceOnPlateau: .threshold is nan: give 0 or more");
  CHECK_THROWS_WITH(ReduceOnPlateau{.least_factor = 2}.check_options(),
                    "ReduceOnPlateau: .least_factor is 2: give a share of the rate, from 0 to 1");
  CHECK_THROWS_WITH(EarlyStopping{.patience = -1}.check_options(), "EarlyStopping: .patience is -1: give 0 or more epochs");
  CHECK_THROWS_WITH(EarlyStopping{.least_change = -0.1}.check_options(), "EarlyStopping: .least_change is -0.1: give 0 or more");
}

TEST_CASE("the reduction on a plateau takes a finite value for better than an infinite one") {
  ReduceOnPlateau reduce{.factor = 0.5, .patience = 0};
  FitControl control;
  int number = 0;
  for (const double loss : {std::numeric_limits<double>::infinity(), 3.0, 2.0, 1.0}) {
    auto record = epoch(++number, loss);
    reduce.on_epoch_end(record, control);
    CHECK(control.rate_factor() == 1);
  }
}

TEST_CASE("the reduction on a plateau does not raise a rate that is lower already") {
  ReduceOnPlateau reduce{.patience = 0, .least_factor = 0.1};
  FitControl control;
  control.set_rate_factor(0.01);  // by another callback
  for (int e = 1; e < 4; ++e) {
    auto record = epoch(e, 1);
    reduce.on_epoch_end(record, control);
  }
  CHECK(control.rate_factor() == 0.01);
}
