// SPDX-License-Identifier: Apache-2.0
// How ranks agree on a signal; tests/train/signal_watch_test.cpp has whole fits that end by one.
#include "skein/train/fit_signals.hpp"

#include <catch2/catch.hpp>

#include <signal.h>

namespace sk = skein;
using sk::train::detail::FitFacts;
using sk::train::detail::FitSignals;

TEST_CASE("a signal on any rank ends the fit of all, once", "[train]") {
  const sk::train::FitInterrupt options{.also = SIGUSR1};
  FitSignals here(options, FitFacts{.ranks = 2, .in_step = true}, false), there(options, FitFacts{.rank = 1, .ranks = 2}, false);
  double own[3], other[3];
  here.count(0, own);
  CHECK((own[0] == 0 && own[1] == 0 && own[2] == 0));
  CHECK_FALSE(here.take(own));
  ::raise(SIGUSR1);
  CHECK(here.heard(0) == SIGUSR1);
  here.count(SIGTERM, own);  // its own goes before that of its servers
  CHECK((own[0] == 0 && own[1] == 0 && own[2] == 1));
  there.count(SIGTERM, other);
  const double of_all[3] = {0, 1, 2};
  CHECK((here.take(of_all) && there.take(of_all)));
  CHECK((here.ending() == SIGTERM && there.ending() == SIGTERM));
  CHECK_FALSE(here.take(own));
  CHECK(here.ending() == SIGTERM);
}

TEST_CASE("ranks ask each other about four times a second, at an update that all know", "[train]") {
  const sk::train::FitInterrupt options{};
  const auto never = [] { return false; };
  const auto always = [] { return true; };
  FitSignals in_step(options, FitFacts{.ranks = 2, .in_step = true}, false), apart(options, FitFacts{.ranks = 2}, false);
  for (FitSignals* s : {&in_step, &apart}) {
    s->begin(100);
    CHECK(s->updated());
    CHECK(s->due(never));               // the first update is one
    CHECK(s->next_round(100.01) == 4);  // not more than four times as many as the last time
    s->asked(100.01, 4);
    for (int i = 0; i < 3; ++i) {
      CHECK(s->updated());
      CHECK_FALSE(s->due(always));
    }
    CHECK(s->updated());
    CHECK(s->due(always));
  }
  CHECK(in_step.due(never));
  CHECK_FALSE(apart.due(never));  // its ranks have not waited for each other
  for (int i = 0; i < 12; ++i) CHECK(apart.updated());
  CHECK(apart.due(never));
  CHECK(apart.next_round(102.01) == 2);  // 16 updates in 2 s
  const sk::train::FitInterrupt none{.on_signals = false};
  FitSignals deaf(none, FitFacts{.ranks = 2}, false);
  CHECK_FALSE(deaf.updated());
}
