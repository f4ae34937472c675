// SPDX-License-Identifier: Apache-2.0
#include <skein/train/progress.hpp>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace skein::train;

namespace {
std::string line(const ProgressState& state, int columns = 0) {
  std::string text;
  append_progress(text, state, columns);
  return text;
}
std::string duration(double seconds) {
  std::string text;
  detail::append_duration(text, seconds);
  return text;
}
std::string rate(double value) {
  std::string text;
  detail::append_rate(text, value);
  return text;
}
ProgressState running() {
  ProgressState s;
  s.epoch = 2, s.epochs = 5, s.step = 234, s.steps = 469, s.loss = 0.123456, s.accuracy = 0.96314;
  s.samples_per_second = 48211, s.exposed_communication = 0.0312, s.seconds_left = 12.4;
  return s;
}
/// What a Progress wrote.
struct Capture {
  std::FILE* file = std::tmpfile();
  ~Capture() { std::fclose(file); }
  std::string text() {
    std::fflush(file);
    std::rewind(file);
    std::string all(100000, '\0');
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
};
}  // namespace

TEST_CASE("the line of a running epoch") {
  CHECK(line(running()) ==
        "epoch 2/5  [=========>          ] 234/469  loss 0.1235  accuracy 96.31 %  48.2k samples/s  "
        "exposed communication 3.1 %  0:12 left");
  ProgressState bare;
  bare.epochs = 3, bare.steps = 10, bare.loss = 2.5;
  CHECK(line(bare) == "epoch 1/3  [>                   ] 0/10  loss 2.5");
  bare.step = 10;
  CHECK(line(bare) == "epoch 1/3  [====================] 10/10  loss 2.5");
  bare.steps = 0;
  bare.loss = not_measured;  // news, not a lack
  CHECK(line(bare) == "epoch 1/3  step 10  loss nan");
}

TEST_CASE("the line is cut to the columns of the terminal, and only itself") {
  std::string text = "before ";
  append_progress(text, running(), 30);
  CHECK(text == "before epoch 2/5  [=========>        ");
  CHECK(line(running(), 1000) == line(running()));
}

TEST_CASE("the line of an epoch's end") {
  EpochRecord record;
  record.epoch = 2;
  record.training.loss = 0.25, record.training.accuracy = 0.9;
  record.samples_per_second = 1.5e6, record.seconds = 3.14159;
  std::string text;
  append_epoch(text, record, 5);
  CHECK(text == "epoch 2/5   loss 0.25  accuracy 90.00 %  1.50M samples/s  3.14 s");
  record.validation.loss = 0.125, record.validation.accuracy = 0.9893;
  record.validation.set("top-5", 0.999);
  record.exposed_communication = 0.05;
  text.clear();
  append_epoch(text, record, 5);
  CHECK(text ==
        "epoch 2/5   loss 0.25  accuracy 90.00 %  validation  loss 0.125  accuracy 98.93 %  top-5 0.999  1.50M samples/s  "
        "exposed communication 5.0 %  3.14 s");
}

TEST_CASE("durations and rates are short") {
  CHECK(duration(0) == "0:00");
  CHECK(duration(-3) == "0:00");
  CHECK(duration(59.6) == "1:00");
  CHECK(duration(754) == "12:34");
  CHECK(duration(3723) == "1:02:03");
  CHECK(duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5) == "2 d 03:04:05");
  CHECK(rate(0) == "0");
  CHECK(rate(999) == "999");
  CHECK(rate(1000) == "1.00k");
  CHECK(rate(12345) == "12.3k");
  CHECK(rate(123456) == "123k");
  CHECK(rate(999600) == "1.00M");
  CHECK(rate(4.56e9) == "4.56G");
}

TEST_CASE("the time that is left") {
  CHECK(seconds_left(10, 100, 400) == 30);
  CHECK(seconds_left(10, 0, 400) != seconds_left(10, 0, 400));
  CHECK(seconds_left(10, 400, 400) == 0);
}

TEST_CASE("without a terminal: whole lines, one an interval, the first after one") {
  Capture capture;
  {
    Progress progress({.stream = capture.file, .terminal = ProgressOptions::Terminal::No, .line_every = 10});
    ProgressState state;
    state.loss = 1;
    for (int second = 100; second <= 125; ++second) {
      state.step = second;
      progress.update(state, second);
    }
    EpochRecord record;
    record.epoch = 1, record.training.loss = 0.5;
    progress.epoch(record, 1);
  }
  CHECK(capture.text() == "epoch 1/1  step 110  loss 1\nepoch 1/1  step 120  loss 1\nepoch 1/1   loss 0.5  0.00 s\n");
}

TEST_CASE("on a terminal: one line written over, its rest blanked, an epoch's line that stays") {
  Capture capture;
  {
    Progress progress({.stream = capture.file, .terminal = ProgressOptions::Terminal::Yes, .refresh_every = 0.1});
    ProgressState state;
    state.loss = 0.625;
    progress.update(state, 1.0);
    progress.update(state, 1.05);  // too soon
    state.loss = 0.5;
    progress.update(state, 1.2);
    progress.line("saved");
    progress.update(state, 1.4);
  }
  CHECK(capture.text() ==
        "\repoch 1/1  step 0  loss 0.625"
        "\repoch 1/1  step 0  loss 0.5  "
        "\r" +
            std::string(27, ' ') +
            "\rsaved\n"
            "\repoch 1/1  step 0  loss 0.5"
            "\r" +
            std::string(27, ' ') + "\r");
}

TEST_CASE("ranks other than 0 write nothing, and nothing is due on them") {
  Capture capture;
  Progress progress({.stream = capture.file, .rank = 1, .terminal = ProgressOptions::Terminal::Yes});
  CHECK_FALSE(progress.due(1e9));
  progress.update(running(), 0);
  progress.epoch(EpochRecord{}, 1);
  progress.line("x");
  CHECK(capture.text().empty());
}

TEST_CASE("a file is not taken for a terminal") {
  Capture capture;
  Progress progress({.stream = capture.file});
  progress.update(running(), 0);
  progress.update(running(), 11);
  CHECK(capture.text().find('\r') == std::string::npos);
}

namespace {
/// A pseudo-terminal, as mpirun gives one to its ranks.
struct PseudoTerminal {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  std::FILE* slave = nullptr;
  PseudoTerminal() {
    REQUIRE((master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0));
    slave = std::fopen(::ptsname(master), "w");
    REQUIRE(slave);
  }
  ~PseudoTerminal() {
    std::fclose(slave);
    ::close(master);
  }
  std::string text() {
    std::fflush(slave);
    std::string all(4096, ' ');
    all.resize(static_cast<std::size_t>(::read(master, all.data(), all.size())));
    return all;
  }
};
/// An environment variable for a scope; null: not set.
struct Environment {
  Environment(const char* n, const char* value) : name(n), before(std::getenv(n) ? std::getenv(n) : ""), was_set(std::getenv(n)) {
    if (value) ::setenv(name, value, 1);
    else ::unsetenv(name);
  }
  ~Environment() {
    if (was_set) ::setenv(name, before.c_str(), 1);
    else ::unsetenv(name);
  }
  const char* name;
  std::string before;
  bool was_set;
};
/// What a rank writes of a running epoch after a minute, and of its end.
std::string written(const char* launched, const char* wanted) {
  const Environment rank("OMPI_COMM_WORLD_RANK", launched), choice("SKEIN_PROGRESS", wanted), other("PMIX_RANK", nullptr);
  PseudoTerminal terminal;
  Progress progress({.stream = terminal.slave});
  progress.update(running(), 0);
  progress.update(running(), 60);
  progress.line("end");
  progress.finish();
  if (wanted && std::string(wanted) == "off") std::fputs("nothing", terminal.slave);
  return terminal.text();
}
bool has_bar(const std::string& text) { return text.find("\repoch 2/5") != std::string::npos; }
}  // namespace

TEST_CASE("under a launcher whole lines, though its ranks see a terminal; SKEIN_PROGRESS chooses") {
  CHECK(has_bar(written(nullptr, nullptr)));
  const std::string lines = written("0", nullptr);
  CHECK_FALSE(has_bar(lines));
  CHECK(lines.find("accuracy 96.31 %") != std::string::npos);
  CHECK(has_bar(written("0", "bar")));
  CHECK_FALSE(has_bar(written(nullptr, "lines")));
  CHECK(written(nullptr, "off") == "nothing");
  CHECK_THROWS_WITH(written(nullptr, "no"), "SKEIN_PROGRESS=no is not bar, lines or off");
}
