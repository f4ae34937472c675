// SPDX-License-Identifier: Apache-2.0
// What the flags of experiments must agree on.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "../examples/experiments/support/flag_checks.hpp"

namespace ex = experiments;

TEST_CASE("A value that a flag names twice is refused", "[experiments]") {
  ex::check_distinct("batches", std::vector<int>{64, 128, 256});
  ex::check_distinct("batches", std::vector<int>{});
  CHECK_THROWS_WITH(ex::check_distinct("batches", std::vector<int>{64, 128, 64}),
                    Catch::Contains("--batches has 64 twice: name each value once"));
  CHECK_THROWS_WITH(ex::check_distinct("network", std::vector<std::string>{"mlp", "mlp"}),
                    Catch::Contains("--network has mlp twice: name each value once"));
  CHECK_THROWS_AS(ex::check_distinct("depths", std::vector<int>{50, 50}), skein::FlagError);
}

TEST_CASE("A batch that no step can have is refused", "[experiments]") {
  ex::check_at_most("batch", 96, 96, "samples of each rank");
  CHECK_THROWS_WITH(
      ex::check_at_most("batch", 1'000'000, 96, "samples of each rank"),
      Catch::Contains("--batch 1000000 is more than the 96 samples of each rank: give a smaller one, or more --samples"));
  const std::string all = ex::more_samples(false);
  CHECK_THROWS_WITH(ex::check_at_most("batch", 97, 96, "samples of an epoch", all), Catch::EndsWith("give a smaller one"));
  CHECK_THROWS_WITH(ex::check_at_most("batch", 1, 0, "samples of each rank", ex::more_samples(true)),
                    Catch::EndsWith("the 0 samples of each rank: give fewer ranks, or more --samples"));
  CHECK_THROWS_WITH(ex::check_at_most("batch", 1, 0, "samples of each worker", all, "fewer workers"),
                    Catch::EndsWith("the 0 samples of each worker: give fewer workers"));
}

TEST_CASE("A title says of a smaller set how much of it there is, and not where it was found", "[experiments]") {
  CHECK(ex::data_in_words("MNIST from /data/mnist", 600) == "MNIST, the first 600 images");
  CHECK(ex::data_in_words("synthetic digits (MNIST was not found)", 0) == "synthetic digits");
  CHECK(ex::first_images(0).empty());
}

TEST_CASE("A batch of all ranks has equal shares", "[experiments]") {
  CHECK(ex::batch_of_rank(128, 0, 4) == 128);
  CHECK(ex::batch_of_rank(128, 256, 4) == 64);
  CHECK_THROWS_WITH(ex::batch_of_rank(128, 256, 3),
                    Catch::Contains("--global-batch 256 has no equal shares for 3 ranks: give a multiple of 3"));
  CHECK_THROWS_AS(ex::batch_of_rank(128, 3, 4), skein::FlagError);
}

TEST_CASE("A flag that would do nothing beside another is refused", "[experiments]") {
  ex::check_unused("record", false, "with --processes");
  CHECK_THROWS_WITH(ex::check_unused("record", true, "with --processes"),
                    Catch::Contains("--record does nothing with --processes: leave it out"));
  CHECK_THROWS_AS(ex::check_unused("record", true, "with --processes"), skein::FlagError);
}

TEST_CASE("A warm-up that would outlast the training is left out, and that is said", "[experiments]") {
  CHECK((ex::warms_up(2, 3) && !ex::warms_up(3, 3) && !ex::warms_up(0, 3)));
  CHECK(ex::left_out_warmup(2, 3).empty());
  CHECK(ex::left_out_warmup(0, 3).empty());
  CHECK_THAT(ex::left_out_warmup(3, 3), Catch::StartsWith("no warm-up: --warmup 3 is not below --epochs 3"));
}
