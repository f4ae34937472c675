// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/advise.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

using namespace skein::plan;
using Catch::Matchers::Contains;

namespace {
/// Four layers of 1,000 scalars and equal flops; the parameterless one between them has none.
constexpr LayerNode layer(long at) {
  LayerNode o;
  o.parameter = at;
  o.parameters = o.logical_parameters = 1000;
  o.flops = 2000;
  return o;
}
constexpr LayerNode layers[] = {layer(0), layer(1000), LayerNode{}, layer(2000), layer(3000)};
constexpr Network flat(double alpha, double beta) { return {{alpha, beta}, {alpha, beta}, 0, 0}; }
constexpr StepWork work(long bucket_bytes, bool overlap) { return {layers, 4000, 4, {1, 2, 0.5}, bucket_bytes, overlap}; }
Job job(double alpha, double beta) {
  return {.operations = layers,
          .scalars = 4000,
          .step_seconds = 1e-3,
          .samples = 60000,
          .batch = 100,
          .network = flat(alpha, beta),
          .most_ranks = 64};
}
}  // namespace

// By hand. On two ranks a ring sends 2 messages of half: a bucket of 4,000 bytes takes 0.4 s, one of 16,000 takes 1.6 s.
static_assert(backward_share(layers, 4000) == 0 && backward_share(layers, 3000) == 0.25 && backward_share(layers, 1) == 0.75 &&
              backward_share(layers, 0) == 1);
static_assert(step_cost(work(16000, true), flat(0, 1e-4), 2, 0).exposed > 1.5999 &&
              step_cost(work(16000, true), flat(0, 1e-4), 2, 0).exposed < 1.6001);
static_assert(step_cost(work(4000, true), flat(0, 1e-4), 2, 0).buckets == 4);
static_assert(step_cost(work(4000, true), flat(0, 1e-4), 1, 0).seconds() == 3.5);

TEST_CASE("buckets hide behind the backward pass of the layers before them", "[advise]") {
  const StepCost hidden = step_cost(work(4000, true), flat(0, 1e-4), 2, 0);  // ready at 1.5, 2, 2.5, 3
  CHECK(hidden.exposed == Approx(0.4));
  CHECK(hidden.sync == Approx(1.6));
  CHECK(hidden.seconds() == Approx(3.9));
  CHECK(step_cost(work(4000, false), flat(0, 1e-4), 2, 0).exposed == Approx(1.6));
  const StepCost full = step_cost(work(4000, true), flat(0, 2e-4), 2, 0);  // 0.8 s each: the links are never free
  CHECK(full.exposed == Approx(1.5 + 3.2 - 3));
  CHECK(all_reduce_seconds(flat(1, 0), 8, 64, static_cast<int>(AllReduceAlgorithm::ring)) == 14);
  CHECK(all_reduce_seconds(flat(1, 0), 8, 64) == 3);
}

TEST_CASE("trainings on clocks: the slowest rank and the period", "[advise]") {
  CHECK(seconds_of({.ranks = 4096, .steps = 10, .compute = 2, .exposed = 0.5}) == Approx(25));
  CHECK(seconds_of({.ranks = 8, .steps = 10, .compute = 2, .exposed = 0.5, .period = 5}) == Approx(21));
  CHECK(seconds_of({.ranks = 8, .steps = 10, .compute = 2, .exposed = 0.5, .period = 0, .slow = {3}}) == Approx(60));
  // The last of many is later than the last of few; between rare exchanges it evens out.
  const double few = seconds_of({.ranks = 2, .steps = 100, .jitter = 0.1}),
               many = seconds_of({.ranks = 512, .steps = 100, .jitter = 0.1}),
               rare = seconds_of({.ranks = 512, .steps = 100, .period = 50, .jitter = 0.1});
  CHECK(few > 101);
  CHECK(many > 1.15 * few);
  CHECK(rare < 0.9 * many);
  CHECK_THROWS_WITH(seconds_of({.ranks = 0}), "seconds_of: .ranks is 0: give 1 or more");
}

TEST_CASE("the criterion: it pays where T_sync is below (R - 1) T_comp", "[advise]") {
  // 2 messages of 8,000 bytes, all ready at the end: T_sync = 16,000 beta.
  for (const double t_sync : {0.5e-3, 0.99e-3, 1.01e-3, 3e-3}) {
    Job j = job(0, t_sync / 16000);
    j.overlap = false;
    const Advice a = advise(j);
    INFO(t_sync);
    CHECK(a.table[0].epoch == Approx(0.6));
    CHECK(a.table[1].ranks == 2);
    CHECK(a.table[1].epoch == Approx(300 * (1e-3 + t_sync)));
    CHECK(a.table[1].pays == (t_sync < 1e-3));
    CHECK_THAT(a.text(), Contains(t_sync < 1e-3 ? "It pays, since T_sync / T_comp" : "It does not pay"));
  }
}

TEST_CASE("the best number of ranks, buckets and periods", "[advise]") {
  const Advice fast = advise(job(1e-8, 1e-12));
  CHECK(fast.best.ranks == 64);
  CHECK(fast.thrifty.ranks == 64);
  CHECK(fast.period == 1);
  CHECK_THAT(fast.text(),
             Contains("The shortest epoch is that of 64 ranks") && Contains("Exchange in every step") && Contains("(simulated)"));

  const Advice slow = advise(job(1, 1e-3));  // a second a message
  CHECK(slow.best.ranks == 1);
  CHECK_THAT(slow.text(), Contains("No number of ranks up to 64 is faster than one"));

  Job between = job(0, 1e-6 / 16);  // a bucket of all takes a step's time; of a layer a quarter of it
  const Advice some = advise(between);
  CHECK(some.best.ranks > 2);
  CHECK(some.best.efficiency < 0.99);
  CHECK(some.bucket_bytes == 4096);
  for (const RankForecast& f : some.table) {
    CHECK(some.best.epoch <= f.epoch);
    if (f.ranks > some.thrifty.ranks) CHECK(f.efficiency < 0.8);
  }
  // Exchanges every `period` steps take no more than a tenth of the time.
  const Advice rare = advise(job(1e-3, 0));
  REQUIRE(rare.period > 1);
  CHECK(rare.best.exposed / rare.period <= 0.1 * (1e-3 + rare.best.exposed / rare.period) * 1.0001);
  CHECK(rare.best.exposed / (rare.period - 1) > 0.1 * (1e-3 + rare.best.exposed / (rare.period - 1)));

  Job few = job(1e-8, 0);
  few.samples = 1000;  // ten batches: more ranks have nothing to do
  CHECK(advise(few).table.back().ranks == 10);
}

TEST_CASE("the all-reduce that is named is that of the largest bucket, with which its size was found", "[advise]") {
  std::vector<LayerNode> twelve(12);
  for (std::size_t i = 0; i < twelve.size(); ++i) {
    twelve[i].parameter = static_cast<long>(i) * 16384;
    twelve[i].parameters = twelve[i].logical_parameters = 16384;
    twelve[i].flops = 1;
  }
  const Network one_node{{3e-5, 8e-10}, {3e-5, 8e-10}, 0, 0};
  const Advice a = advise({.operations = twelve,
                           .scalars = 12 * 16384,
                           .step_seconds = 5e-3,
                           .samples = 60000,
                           .batch = 100,
                           .network = one_node,
                           .most_ranks = 8});
  REQUIRE(a.best.ranks == 8);
  REQUIRE(a.buckets == 12);  // of a layer each: of all at once a torus would be the cheapest
  CHECK(cheapest_all_reduce(one_node, 8, 12 * 65536).algorithm == AllReduceAlgorithm::torus);
  CHECK(a.algorithm.algorithm == AllReduceAlgorithm::recursive_doubling);
  const auto step = [&](AllReduceAlgorithm algorithm) {
    return step_cost({twelve, 12 * 16384, 4, compute_times(5e-3), a.bucket_bytes}, one_node, 8, static_cast<int>(algorithm));
  };
  CHECK(step(a.algorithm.algorithm).seconds() == Approx(a.best.step));
  CHECK(step(AllReduceAlgorithm::torus).seconds() > 1.1 * a.best.step);
  CHECK_THAT(a.text(), Contains("are best, the largest by the recursive doubling all-reduce: {.bucket_bytes = "));
  CHECK_THAT(a.text(), Contains("  ranks   all-reduce a step   waited for   epoch"));  // T_sync is what is waited for
}

TEST_CASE("the schedule of a pipeline is the shortest, and of those the one that keeps least", "[advise]") {
  const Advice a = advise(job(1e-6, 1e-9));
  CHECK(a.stages == 4);
  CHECK(a.schedule == "zero bubble");
  CHECK(a.bubble == Approx(check(zero_bubble(4, 8)).bubble));
  CHECK(a.gpipe_bubble == Approx(3.0 / 11));
  CHECK(a.live == 4);
  CHECK(a.gpipe_live == 8);
  Job more = job(1e-6, 1e-9);
  more.micros = 32;
  CHECK(advise(more).bubble < a.bubble / 2);
  more.micros = 100000;
  CHECK(advise(more).bubble < 1e-4);
  Job half = job(1e-6, 1e-9);
  half.scalar_bytes = 2;
  CHECK(advise(half).best.sync < a.best.sync);
  CHECK_THAT(a.text(), Contains("zero bubble is shortest") && Contains("GPipe: 27 %"));
}

TEST_CASE("advice as one asks for it", "[advise]") {
  // [quote advise]
  const Advice advice =
      advise({.operations = layers,  // Model::program.ops()
              .scalars = 4000,       // Model::sizes.stored
              .step_seconds = 1e-3,  // measured, on one rank, with a batch of
              .samples = 60000,
              .batch = 100,
              .network = {.near = {2e-6, 2e-9}, .far = {2e-5, 1e-8}, .node = 4},  // or comm::measured_network(world).network
              .most_ranks = 64});
  const std::string sentences =
      advice.text();  // "... The shortest epoch is that of 64 ranks: 14.5 ms, 41.4 times as fast as one, ..."
  // [end]
  CHECK_THAT(sentences, Contains("The shortest epoch is that of 64 ranks: 14.5 ms, 41.4 times as fast as one"));
}

TEST_CASE("a job that says too little is refused", "[advise]") {
  CHECK_THROWS_WITH(advise({}), Contains(".step_seconds is the measured time of a step"));
  CHECK_THROWS_WITH(advise({.step_seconds = 1}), Contains(".batch (of a rank) and .samples"));
  CHECK_THROWS_WITH(advise({.step_seconds = 1, .samples = 1, .batch = 1}), Contains(".operations are Model::program.ops()"));
  CHECK_THROWS_WITH(advise({.step_seconds = HUGE_VAL}), Contains("it is inf"));
  const Job given = job(2e-6, 2e-9);
  for (const double bytes : {0.0, -4.0, -HUGE_VAL}) {
    Job other = given;
    other.scalar_bytes = bytes;
    CHECK_THROWS_WITH(advise(other), Contains("advise: .scalar_bytes is "));
  }
  for (const double seconds : {-1e-6, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    Job other = given;
    other.network.near.beta = seconds;
    CHECK_THROWS_WITH(advise(other), Contains("seconds of a message or of a byte: give finite ones, 0 or more"));
  }
  Job boundless = given;
  boundless.most_ranks = std::numeric_limits<int>::max();
  boundless.samples = std::numeric_limits<long>::max();
  CHECK(advise(boundless).table.back().ranks == boundless.most_ranks);
}
