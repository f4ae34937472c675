// SPDX-License-Identifier: Apache-2.0
// Options of fit that would do nothing, or harm: each is refused with a sentence that says what to write.
#include "skein/train/check_fit.hpp"

#include <catch2/catch.hpp>

#include <limits>

namespace sk = skein;
using namespace skein::train::detail;
using Catch::Contains;

TEST_CASE("options of fit that would do nothing without a word are refused") {
  CHECK_NOTHROW(check_fit_options({}));
  CHECK_NOTHROW(check_fit_options({.checkpoint = {.folder = "run", .every = 5, .keep = 2}}));
  const auto refused = [](const sk::FitOptions& options, const char* sentence) {
    CHECK_THROWS_WITH(check_fit_options(options), Contains(sentence));
    CHECK_THROWS_AS(check_fit_options(options), sk::ArgumentError);
  };
  refused({.checkpoint = {.every = 5}}, ".checkpoint has no .folder");
  refused({.checkpoint = {.keep = 7}}, ".checkpoint has no .folder");
  refused({.checkpoint = {.async = true}}, ".checkpoint has no .folder");
  refused({.checkpoint = {.folder = "run", .every = -1}}, ".checkpoint.every is -1");
  refused({.checkpoint = {.folder = "run", .keep = 1}}, "keep 2 or more");
  refused({.clip_norm = -1}, "clip_norm");
  refused({.clip_norm = std::numeric_limits<double>::quiet_NaN()}, "clip_norm");
  refused({.threads = -2}, "threads");
  refused({.on_nan = static_cast<sk::OnNan>(3)},
          ".on_nan is 3, and no value of its enumeration has that number: give stop, skip");
  refused({.loader = {.partition = static_cast<sk::data::Partition>(2)}}, "give shared or local");
  refused({.loader = {.last = static_cast<sk::data::LastBatch>(-1)}}, ".loader.last is -1");
  refused({.loader = {.prefetch = static_cast<sk::data::Prefetch>(3)}}, ".loader.prefetch is 3");
  refused({.compute = {.execution = static_cast<sk::Execution>(3)}}, "give automatic, layer_wise or depth_first");
  refused({.compute = {.denormals = static_cast<sk::Denormals>(2)}}, "give flush or keep");
}

TEST_CASE("weights are compared between steps only where a policy keeps them the same") {
  using Same = skein::parallel::SameWeights;
  CHECK_NOTHROW(check_replica_options({.ranks = 2, .same_weights = Same::after_step}, 10));
  CHECK_NOTHROW(check_replica_options({.ranks = 1, .same_weights = Same::never}, 10));
  CHECK_NOTHROW(check_replica_options({.ranks = 2, .same_weights = Same::never}, 0));
  CHECK_THROWS_WITH(check_replica_options({.ranks = 2, .same_weights = Same::never}, 10), Contains("leave it out"));
  CHECK_THROWS_WITH(check_replica_options({.ranks = 2, .same_weights = Same::after_step}, -1), Contains("0 or more"));
}
