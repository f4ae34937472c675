// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/kfac/kfac.hpp>

#include <catch2/catch.hpp>
#include <skein/comm/thread/spawn.hpp>

#include "../../support/gradient_workers_cases.hpp"
#include "../../support/temporary_folder.hpp"

namespace cases = gradient_workers_cases;
namespace sk = skein;
namespace sp = skein::parallel;

TEST_CASE("Every rank, some or one may keep the inverses: the weights are those of one rank", "[parallel]") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  sk::spawn(ranks, [](sk::ThreadComm& world) {
    cases::agrees_with_one_rank<sp::EveryRank>(world);
    cases::agrees_with_one_rank<sp::Fraction<1, 2>>(world);
    cases::agrees_with_one_rank<sp::OneRank>(world);
    cases::agrees_with_one_rank<sp::EveryRank, cases::Normalized>(world);
    cases::agrees_with_one_rank<sp::Fraction<1, 2>, cases::Normalized>(world);
    cases::agrees_with_one_rank<sp::OneRank, cases::Normalized>(world);
    cases::agrees_with_one_rank<sp::Fraction<1, 2>, cases::Synchronized>(world, sp::SyncBatchNorm{});
  });
}

TEST_CASE("Gradient workers send what the plan says, and keep their part of the inverses", "[parallel]") {
  sk::spawn(4, [](sk::ThreadComm& world) {
    cases::sends_what_is_planned<sp::EveryRank>(world);
    cases::sends_what_is_planned<sp::Fraction<1, 2>>(world);
    cases::sends_what_is_planned<sp::OneRank>(world);
    cases::sends_what_is_planned<sp::Fraction<1, 2>, cases::Normalized>(world);
    cases::keeps_its_part<sp::Fraction<1, 2>, cases::Normalized>(world);
    cases::keeps_its_part<sp::EveryRank>(world);
    cases::keeps_its_part<sp::Fraction<1, 2>>(world);
    cases::keeps_its_part<sp::OneRank>(world);
  });
}

TEST_CASE("A training whose inverses are on several ranks is saved whole", "[parallel]") {
  const support::TemporaryFolder folder;
  const int ranks = GENERATE(2, 4);
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    cases::goes_on(world, folder / "training");
    cases::goes_on<cases::Normalized>(world, folder / "normalized");
  });
}
