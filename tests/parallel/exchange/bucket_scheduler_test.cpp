// SPDX-License-Identifier: Apache-2.0
// What BucketScheduler asks of an exchange, in which order.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/parallel/exchange/bucket_scheduler.hpp>

namespace {
using Range = skein::plan::Range;

/// Writes down what it is asked; bucket i is complete once `complete` is larger.
struct Noted {
  std::string* log;
  std::size_t complete = 0;
  explicit Noted(std::string* to) : log(to) {}
  void note(char c, std::size_t i) { *log += c + std::to_string(i) + " "; }
  void begin(std::size_t i) { note('b', i); }
  bool poll(std::size_t i) {
    note('p', i);
    return i < complete;
  }
  void backward_ended() { *log += "| "; }
  void wait(std::size_t i) { note('w', i); }
  void drop() { *log += "drop "; }
};
struct Scheduled {
  std::string log;
  std::vector<Range> buckets{{20, 36}, {12, 20}, {0, 12}};
  skein::parallel::BucketScheduler<Noted> scheduler{buckets, 36, &log};
};
}  // namespace

TEST_CASE("buckets begin as soon as they are whole, and are looked at in order", "[parallel]") {
  Scheduled s;
  s.scheduler.ready(25, 36, true);
  CHECK(s.log == "");  // the first bucket is not whole
  s.scheduler.ready(15, 25, true);
  CHECK(s.log == "b0 p0 ");
  s.log.clear();
  s.scheduler.ready(15, 15, true);  // a chance to make progress
  CHECK(s.log == "p0 ");
  s.log.clear();
  s.scheduler.exchange().complete = 1;
  s.scheduler.ready(0, 15, true);
  CHECK(s.log == "b1 b2 p0 p1 ");
  s.log.clear();
  CHECK(s.scheduler.finish() >= 0);
  CHECK(s.log == "| w1 w2 ");  // what was seen complete is not waited for
  for (const auto& b : s.scheduler.timer().trace()) CHECK(b.done >= b.started);
}

TEST_CASE("what was not ready before the end of backward begins there", "[parallel]") {
  Scheduled s;
  s.scheduler.ready(12, 36, false);
  s.scheduler.finish();
  CHECK(s.log == "b0 b1 b2 | w0 w1 w2 ");
  s.log.clear();
  s.scheduler.finish();  // no gradients became ready: an exchange that waits for all of them
  CHECK(s.log == "b0 b1 b2 | w0 w1 w2 ");
}

TEST_CASE("a step that was broken off is dropped when the next begins", "[parallel]") {
  Scheduled s;
  s.scheduler.ready(12, 36, false);
  s.log.clear();
  s.scheduler.ready(12, 36, false);
  CHECK(s.log == "drop b0 b1 ");
  s.scheduler.ready(0, 12, false);
  s.scheduler.finish();
  s.log.clear();
  s.scheduler.ready(12, 36, false);
  CHECK(s.log == "b0 b1 ");  // a whole step is no broken one
}
